import { AnswerTooLarge } from "../agents/index.ts";
import { ByteBlocks } from "../base/byte-blocks.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { takeTurn } from "../base/inflow.ts";
import { Locks } from "../base/locks.ts";
import { SilenceTimer } from "../models/silence.ts";
import type { AttemptEnd, ModelAttempt } from "./attempt.ts";
import type { DialectApi, ReceivedAnswer, StreamReader } from "./dialect.ts";
import type { DialectAnswer } from "./dialect-answer.ts";
import { type AttemptFailure, brokenFailure, thrownFailure } from "./failures.ts";
import { EventSplitter, eventsIn, startOfEvent } from "./pass/events.ts";

/** The maximum number of bytes of an unfinished event. */
const MOST_EVENT_BYTES = 4 * 1024 * 1024;
/** How long a client may leave a pending part unread. */
const STALL_MS = 60_000;
/** Answers of at most this many bytes may be merged at the same time as others. */
const SHORT_ANSWER = 256 * 1024;
/**
 * A stop may end hundreds of streams at once, and merging an answer takes several times its memory. So the long
 * answers of a workspace are merged one after another.
 */
const LONG_MERGES = new Locks();

export interface PassingStreamParts {
  readonly api: Pick<DialectApi, "errorEvent">;
  readonly attempt: ModelAttempt;
  readonly answer: DialectAnswer;
  readonly reader: StreamReader;
  readonly requestId: string;
  readonly clock: Clock;
  /** Aborts when the client leaves or Gatehouse ends the call. */
  readonly abort: AbortController;
  /** The refusal to send to the client after an abort; null if the client itself left. */
  interruption(): { readonly problem: Problem; readonly code: string } | null;
  /** Called once when the stream has ended for any reason. */
  ended(): void;
}

/**
 * A streamed answer on its way to the client. Its bytes pass as they arrive, at the client's reading speed, except
 * for the last event, which waits until the outcome is on disk.
 */
export class PassingStream {
  readonly #parts: PassingStreamParts;
  readonly #events = new EventSplitter();
  /** Everything received so far, for the evidence. */
  readonly #received = new ByteBlocks();
  /** Events that can be sent. */
  #ready: Buffer = Buffer.alloc(0);
  /** The last event. */
  #last: Buffer | null = null;
  #failure: AttemptFailure | null = null;
  #isAtEnd = false;
  #hasEnded = false;
  #interruption: Promise<ReturnType<PassingStreamParts["interruption"]>> | null = null;

  constructor(parts: PassingStreamParts) {
    this.#parts = parts;
  }

  /**
   * Reads until the answer has begun, so that another model can still be tried.
   * @returns null, or the reason why this attempt failed
   * @throws whatever reading throws
   */
  async begin(): Promise<AttemptFailure | null> {
    while (!this.#canPass) await this.#read();
    if (this.#failure) {
      await this.#answer();
      return this.#failure;
    }
    if (this.#isAtEnd && this.#last === null && this.#ready.length === 0) return brokenFailure("cut");
    this.#parts.attempt.begins();
    return null;
  }

  /** The bytes for the client. */
  body(): ReadableStream<Uint8Array> {
    const stall = new SilenceTimer(STALL_MS, this.#parts.clock);
    const { abort } = this.#parts;
    stall
      .begin()
      .catch(() => abort.abort(new Problem("client_closed", "The client stopped reading the answer.")));
    // This also works while the client is not reading.
    if (abort.signal.aborted) void this.#interrupted();
    else abort.signal.addEventListener("abort", () => void this.#interrupted(), { once: true });
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          stall.pause();
          const part = await this.#next();
          if (part.bytes.length > 0) controller.enqueue(part.bytes);
          if (part.isLast) {
            stall.end();
            controller.close();
          } else stall.resume();
        },
        cancel: async () => {
          stall.end();
          abort.abort();
        },
      },
      { highWaterMark: 0 },
    );
  }

  get #canPass(): boolean {
    return this.#ready.length > 0 || this.#last !== null || this.#failure !== null || this.#isAtEnd;
  }

  /** The next bytes for the client. Never rejects: failures become the event that ends the stream. */
  async #next(): Promise<{ readonly bytes: Uint8Array; readonly isLast: boolean }> {
    try {
      this.#parts.abort.signal.throwIfAborted();
      while (!this.#canPass) await this.#read();
      if (this.#ready.length > 0) {
        const bytes = this.#ready;
        this.#ready = Buffer.alloc(0);
        return { bytes, isLast: false };
      }
      if (this.#failure) return await this.#fail(this.#failure);
      return await this.#finish();
    } catch (error) {
      const { abort, answer } = this.#parts;
      if (!abort.signal.aborted) return this.#fail(thrownFailure(error, answer.hide));
      const ended = await this.#interrupted();
      return ended ? this.#errorEvent(ended.problem) : { bytes: new Uint8Array(), isLast: true };
    }
  }

  /** Settles the attempt as cancelled, once, with the reason for the abort. */
  #interrupted(): Promise<ReturnType<PassingStreamParts["interruption"]>> {
    this.#interruption ??= this.#interrupt();
    return this.#interruption;
  }

  async #interrupt(): Promise<ReturnType<PassingStreamParts["interruption"]>> {
    const ended = this.#parts.interruption();
    const { text: output } = await this.#answer();
    await this.#end({ status: "cancelled", output, ...(ended ? { code: ended.code } : {}) });
    return ended;
  }

  async #read(): Promise<void> {
    const { attempt, answer, reader, abort } = this.#parts;
    const part = await answer.read();
    abort.signal.throwIfAborted();
    if (part) {
      this.#received.add(part);
      attempt.receivedBytes += part.length;
    } else {
      this.#isAtEnd = true;
      // An event without its final blank line counts only if it ends the stream; otherwise it is incomplete.
      const rest = this.#events.end();
      if (rest.length > 0 && this.#last === null && reader.read(rest) === "end") this.#last = rest;
      return;
    }
    const events = this.#events.add(part);
    if (this.#events.waiting > MOST_EVENT_BYTES) {
      throw new AnswerTooLarge("An event of the model's answer is too large.");
    }
    if (events.length === 0) return;
    const first = reader.firstToRead(events);
    if (first < 0) this.#ready = events;
    else this.#readEach(events, startOfEvent(events, first));
    attempt.reported = reader.usage;
  }

  /** @param from the start of the first event that must be read. All events before it pass unread */
  #readEach(events: Buffer, from: number): void {
    const { reader } = this.#parts;
    const passed: Buffer[] = from > 0 ? [events.subarray(0, from)] : [];
    for (const event of eventsIn(events.subarray(from))) {
      if (this.#last !== null || this.#failure !== null) break;
      const fate = reader.firstToRead(event) < 0 ? "pass" : reader.read(event);
      if (fate === "end") this.#last = event;
      else if (fate === "error") this.#failure = brokenFailure("error");
      else if (fate === "pass") passed.push(event);
    }
    this.#ready = passed.length === 1 ? (passed[0] ?? this.#ready) : Buffer.concat(passed);
  }

  async #finish(): Promise<{ readonly bytes: Uint8Array; readonly isLast: boolean }> {
    const { text: output, isWhole } = await this.#answer();
    this.#parts.abort.signal.throwIfAborted();
    // Without its last event, an answer may be incomplete.
    if (!isWhole && this.#last === null) return this.#fail(brokenFailure("cut"));
    const withheld = await this.#end({ status: "succeeded", output });
    if (withheld) return this.#errorEvent(withheld);
    return { bytes: this.#last ?? new Uint8Array(), isLast: true };
  }

  async #fail(failure: AttemptFailure): Promise<{ readonly bytes: Uint8Array; readonly isLast: boolean }> {
    const { text: output } = await this.#answer();
    await this.#end({ status: "failed", failure, output });
    return this.#errorEvent(failure.problem);
  }

  /**
   * Merges everything received, since the client may have read it, and counts its text. An estimate from all bytes
   * would be far too high: most of a stream is event framing, and one token may take 200 bytes.
   */
  #answer(): Promise<ReceivedAnswer> {
    const { workspaceId } = this.#parts.attempt.call.caller;
    if (this.#received.length <= SHORT_ANSWER) return this.#merge(workspaceId);
    return LONG_MERGES.run(workspaceId, () => this.#merge(workspaceId));
  }

  async #merge(workspaceId: number): Promise<ReceivedAnswer> {
    const { attempt, reader } = this.#parts;
    const pause = (bytes: number) => takeTurn(workspaceId, { bytes });
    // Joining and decoding cannot be interrupted, so they take one turn.
    const wait = pause(this.#received.length);
    if (wait) await wait;
    const answer = await reader.answerOf(this.#received.joined(), pause);
    attempt.receivedBytes = answer.textBytes;
    return answer;
  }

  #errorEvent(problem: Problem): { readonly bytes: Uint8Array; readonly isLast: boolean } {
    const { api, reader, requestId } = this.#parts;
    const events = reader.errorEvents?.(problem, requestId) ?? api.errorEvent(problem, requestId);
    return { bytes: Buffer.from(events), isLast: true };
  }

  /** @returns the refusal that replaces the end of the answer if its outcome cannot be recorded */
  async #end(end: AttemptEnd): Promise<Problem | null> {
    const { attempt, answer, ended } = this.#parts;
    answer.end();
    if (answer.usage !== undefined) attempt.reported = answer.usage;
    const withheld = await attempt.settle(end);
    this.#received.clear();
    if (!this.#hasEnded) ended();
    this.#hasEnded = true;
    return withheld;
  }
}

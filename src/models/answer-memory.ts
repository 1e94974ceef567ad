import { AnswerTooLarge } from "../agents/index.ts";
import type { BodyMemory, BodyShare } from "../base/capped-body.ts";

const MIB = 1024 * 1024;
/** How many bytes of each answer do not count. Ordinary answers are smaller: 25,000 tokens in events of 300 bytes. */
const ORDINARY_BYTES = 8 * MIB;
/** The maximum number of further bytes that all answers in progress may have together. */
const MOST_FURTHER_BYTES = 512 * MIB;

interface StreamedAnswer {
  bytes: number;
  /** The answer's bytes beyond the ordinary number. */
  further: number;
  fail(error: Error): void;
}

/**
 * Limits the memory that all answers in progress may use together. When no room is left, the longest answer fails, so
 * ordinary answers never do.
 */
export class AnswerMemory implements BodyMemory {
  readonly #ordinary: number;
  readonly #most: number;
  /** Answers with more than the ordinary number of bytes. */
  readonly #long = new Set<StreamedAnswer>();
  #further = 0;

  constructor(ordinaryBytes: number = ORDINARY_BYTES, mostFurtherBytes: number = MOST_FURTHER_BYTES) {
    this.#ordinary = ordinaryBytes;
    this.#most = mostFurtherBytes;
  }

  enter(fail: (error: Error) => void): BodyShare {
    const answer: StreamedAnswer = { bytes: 0, further: 0, fail };
    return { add: (bytes) => this.#add(answer, bytes), leave: () => this.#leave(answer) };
  }

  #add(answer: StreamedAnswer, bytes: number): void {
    answer.bytes += bytes;
    const added = Math.min(bytes, answer.bytes - this.#ordinary);
    if (added <= 0) return;
    answer.further += added;
    this.#further += added;
    this.#long.add(answer);
    while (this.#further > this.#most) this.#failLongest();
  }

  #failLongest(): void {
    const [first, ...rest] = this.#long;
    if (!first) throw new Error("bytes are counted for answers that have already ended");
    const longest = rest.reduce((most, answer) => (answer.further > most.further ? answer : most), first);
    this.#leave(longest);
    longest.fail(
      new AnswerTooLarge("The answers in progress take too much memory, and this is the longest."),
    );
  }

  #leave(answer: StreamedAnswer): void {
    if (this.#long.delete(answer)) this.#further -= answer.further;
  }
}

/** All providers of this process share one limit, as they share its memory. */
export const SHARED_ANSWER_MEMORY = new AnswerMemory();

/** The share of one answer in the memory of all answers in progress. MUST be left. */
export class AnswerShare {
  readonly #share: BodyShare;
  readonly #failing = new AbortController();

  constructor(memory: BodyMemory = SHARED_ANSWER_MEMORY) {
    this.#share = memory.enter((error) => this.#failing.abort(error));
  }

  /** Aborts with `failure`. */
  get signal(): AbortSignal {
    return this.#failing.signal;
  }

  /** The error if this answer had to give up its memory; otherwise null. */
  get failure(): Error | null {
    return this.signal.aborted ? this.signal.reason : null;
  }

  /** @throws AnswerTooLarge if this answer has to give up its memory, or has done so before */
  add(bytes: number): void {
    if (!this.signal.aborted) this.#share.add(bytes);
    this.signal.throwIfAborted();
  }

  /** Safe to call more than once. */
  leave(): void {
    this.#share.leave();
  }
}

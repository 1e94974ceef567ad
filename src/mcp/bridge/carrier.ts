import { type Clock, pause } from "../../base/clock.ts";
import type { ProblemCode } from "../../base/errors.ts";
import { RPC } from "../rpc-error.ts";
import { answeredId, type BridgeMessage, type MessageId, requestId } from "./message.ts";
import { BridgeError, SessionLost } from "./refusal.ts";
import { type DoorAddress, DoorSession, eventsOf } from "./session.ts";

export interface CarrierParts {
  readonly door: DoorAddress;
  readonly clock: Clock;
  /** Writes a line to the client; resolves when the next one may follow. Never rejects. */
  readonly toClient: (text: string) => Promise<void>;
  /** Called with warnings for the person at the terminal. */
  readonly warn: (message: string) => void;
}

/** Maximum number of pending requests, and of other messages being sent. */
const MOST_OUT = 1_000;
/** How long a cancellation waits for its request to reach the server before it is sent. */
const OVERTAKE_MS = 500;
/** How many times in a row to resume an answer whose stream was cut off. */
const MOST_RESUMES = 5;
/**
 * How long an answer is held back after progress. The SDK's client dispatches notifications one turn later than
 * answers, and forgets its progress callback with the answer. If it read both in one piece, it would lose the last
 * progress.
 */
const AFTER_PROGRESS_MS = 10;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;

const INITIALIZED = note("notifications/initialized");
const TOOLS_CHANGED = note("notifications/tools/list_changed");

/** A client's request without an answer yet. */
interface OpenRequest {
  readonly abort: AbortController;
  readonly accepted: PromiseWithResolvers<void>;
}

/** The bridge's connection to the server: one session for the client, replaced if the server has lost it. */
export class Carrier {
  readonly #parts: CarrierParts;
  readonly #out = new Map<MessageId, OpenRequest>();
  #session: DoorSession | null = null;
  /** The client's initialize request, kept to initialize a new session. */
  #hello: BridgeMessage | null = null;
  /** Pending while a session is being opened. The client's other messages wait for it. */
  #opening: Promise<void> | null = null;
  #isInitialized = false;
  #notes = 0;
  #bytes = 0;
  #whenDone: (() => void) | null = null;
  /** Called when a message has been sent. */
  onSent: () => void = () => {};

  constructor(parts: CarrierParts) {
    this.#parts = parts;
  }

  /** Length of the messages being sent to the server. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes a message from the client. Never throws. */
  take(message: BridgeMessage): void {
    const id = requestId(message);
    if (id === undefined) {
      if (this.#notes >= MOST_OUT)
        this.#parts.warn(`a message was dropped: ${MOST_OUT} others are being sent`);
      else if (message.cancels !== undefined) void this.#cancel(message, message.cancels);
      else void this.#notify(message);
      return;
    }
    if (this.#out.has(id)) {
      // The answer would be mistaken for that of the first request.
      this.#parts.warn("a request was dropped: another pending request has the same id");
      return;
    }
    if (this.#out.size >= MOST_OUT) {
      this.#answer(id, new BridgeError(RPC.rateLimited, `Too many requests: ${MOST_OUT} are pending.`));
      return;
    }
    const out = { abort: new AbortController(), accepted: Promise.withResolvers<void>() };
    this.#out.set(id, out);
    if (message.method === "initialize") void this.#open(message, id, out);
    else void this.#request(message, id, out);
  }

  /** Answers a request that is not passed on. `code` is the corresponding REST error. */
  refuse(id: MessageId, message: string, code: ProblemCode): void {
    if (!this.#out.has(id))
      this.#answer(id, new BridgeError(RPC.invalidRequest, message, { data: { code } }));
  }

  /** Resolves when all requests are answered. */
  done(): Promise<void> {
    if (this.#out.size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenDone = resolve;
    return promise;
  }

  /** Abandons pending requests and the session. Never throws. */
  async close(): Promise<void> {
    for (const id of this.#out.keys()) {
      this.#fail(id, new BridgeError(RPC.unavailable, "The bridge was stopped before the answer arrived."));
    }
    await this.#session?.end();
  }

  #open(hello: BridgeMessage, id: MessageId, out: OpenRequest): Promise<void> {
    return this.#inTurn(async () => {
      void this.#session?.end();
      const session = new DoorSession(this.#parts.door);
      this.#session = session;
      this.#hello = hello;
      this.#isInitialized = false;
      try {
        const response = await this.#post(session, hello, out);
        await this.#carry(session, response, id, out);
      } catch (error) {
        this.#session = null;
        this.#fail(id, error);
      }
    });
  }

  async #request(message: BridgeMessage, id: MessageId, out: OpenRequest): Promise<void> {
    try {
      const [session, response] = await this.#reach(message, out);
      await this.#carry(session, response, id, out);
    } catch (error) {
      this.#fail(id, error);
    }
  }

  async #notify(message: BridgeMessage): Promise<void> {
    this.#notes += 1;
    try {
      const [session, response] = await this.#reach(message, null);
      await response.body?.cancel();
      if (message.method !== INITIALIZED.method || this.#isInitialized) return;
      this.#isInitialized = true;
      void this.#listen(session);
    } catch (error) {
      this.#parts.warn(wordsOf(error));
    } finally {
      this.#notes -= 1;
    }
  }

  /** Cancels a request, which then gets no answer (specification, "Cancellation"). */
  async #cancel(message: BridgeMessage, id: MessageId): Promise<void> {
    const out = this.#out.get(id);
    if (!out) return;
    this.#settle(id);
    const late = Promise.withResolvers<void>();
    const stop = this.#parts.clock.after(OVERTAKE_MS, late.resolve);
    await Promise.race([out.accepted.promise, late.promise]);
    stop();
    await this.#notify(message);
    out.abort.abort();
  }

  /**
   * Sends a message within the session, or within a new one if that is lost. A message whose session the server did
   * not know has had no effect, so it can be sent again.
   */
  async #reach(message: BridgeMessage, out: OpenRequest | null): Promise<readonly [DoorSession, Response]> {
    this.#bytes += message.text.length;
    try {
      while (this.#opening) await this.#opening;
      const session = this.#session;
      if (!session) throw new BridgeError(RPC.invalidRequest, "There is no session: send initialize first.");
      try {
        return [session, await this.#post(session, message, out)];
      } catch (error) {
        if (!(error instanceof SessionLost)) throw error;
        const renewed = await this.#renew(session);
        return [renewed, await this.#post(renewed, message, out)];
      }
    } finally {
      this.#bytes -= message.text.length;
      this.onSent();
    }
  }

  async #post(session: DoorSession, message: BridgeMessage, out: OpenRequest | null): Promise<Response> {
    const response = await session.post(message, out?.abort.signal ?? session.signal);
    out?.accepted.resolve();
    return response;
  }

  /**
   * Passes on the messages for a request until it is answered.
   * @throws BridgeError
   */
  async #carry(session: DoorSession, first: Response, id: MessageId, { abort }: OpenRequest): Promise<void> {
    const signal = AbortSignal.any([abort.signal, session.signal]);
    const { clock } = this.#parts;
    let response = first;
    let last: string | undefined;
    let progressed = false;
    for (let resumes = 0; ; resumes += 1) {
      try {
        for await (const event of eventsOf(response, signal)) {
          last = event.id ?? last;
          if (event.messages.length > 0) resumes = 0;
          for (const message of event.messages) {
            if (answeredId(message) === id) {
              session.version ??= message.protocolVersion ?? null;
              if (progressed) await pause(AFTER_PROGRESS_MS, clock, signal);
            }
            progressed ||= message.method === "notifications/progress";
            await this.#deliver(message);
          }
        }
      } catch (error) {
        if (error instanceof BridgeError) throw error;
        // A broken connection is treated like an end without an answer.
      }
      if (!this.#out.has(id)) return;
      if (last === undefined || resumes >= MOST_RESUMES) throw brokenOff();
      try {
        await pause(FIRST_WAIT_MS, clock, signal);
        response = await session.listen(last, signal);
      } catch {
        throw brokenOff();
      }
    }
  }

  async #deliver(message: BridgeMessage): Promise<void> {
    const id = answeredId(message);
    // The request has since been cancelled.
    if (id !== undefined && !this.#out.has(id)) return;
    const written = this.#parts.toClient(message.text);
    if (id !== undefined) this.#settle(id);
    await written;
  }

  /** Reads the server's unsolicited messages while this is the client's session. Never throws. */
  async #listen(session: DoorSession): Promise<void> {
    let last: string | undefined;
    let waitMs = FIRST_WAIT_MS;
    while (this.#session === session && session.isOpen) {
      try {
        const response = await session.listen(last, session.signal);
        for await (const event of eventsOf(response, session.signal)) {
          waitMs = FIRST_WAIT_MS;
          last = event.id ?? last;
          for (const message of event.messages) await this.#deliver(message);
        }
      } catch (error) {
        if (session.signal.aborted) return;
        if (error instanceof SessionLost) {
          if (await this.#isRenewed(session)) return;
        } else if (error instanceof BridgeError && error.status !== undefined && error.status < 500) {
          // 405: the server sends no unsolicited messages. Any other error is also reported for each request.
          if (error.status !== 405) this.#parts.warn(error.message);
          return;
        }
        // The server is unavailable or no longer keeps the stream's events, so a new stream is opened.
        last = undefined;
      }
      try {
        await pause(waitMs, this.#parts.clock, session.signal);
      } catch {
        // The session was abandoned.
        return;
      }
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    }
  }

  async #isRenewed(lost: DoorSession): Promise<boolean> {
    try {
      await this.#renew(lost);
      return true;
    } catch (error) {
      this.#parts.warn(wordsOf(error));
      return false;
    }
  }

  /**
   * Replaces a lost session. Concurrent callers share the new one.
   * @throws BridgeError
   */
  async #renew(lost: DoorSession): Promise<DoorSession> {
    while (this.#opening) await this.#opening;
    if (this.#session === lost) {
      let failure: unknown;
      await this.#inTurn(async () => {
        try {
          await this.#introduce(lost);
        } catch (error) {
          failure = error;
        }
      });
      if (failure !== undefined) throw failure;
    }
    if (!this.#session || this.#session === lost) {
      throw new BridgeError(RPC.unavailable, "The session was lost, and no new one could be opened.");
    }
    return this.#session;
  }

  async #introduce(lost: DoorSession): Promise<void> {
    const hello = this.#hello;
    if (!hello || lost.signal.aborted) return;
    const session = new DoorSession(this.#parts.door);
    const { signal } = lost;
    const response = await session.post(hello, signal);
    for await (const { messages } of eventsOf(response, signal)) {
      // The client already has the answer from the lost session.
      for (const { protocolVersion } of messages) session.version ??= protocolVersion ?? null;
    }
    if (session.version === null)
      throw new BridgeError(RPC.unavailable, "The server did not open a new session.");
    if (this.#isInitialized) await (await session.post(INITIALIZED, signal)).body?.cancel();
    this.#session = session;
    void lost.end();
    if (!this.#isInitialized) return;
    void this.#listen(session);
    // The server may now be another version with other tools.
    void this.#deliver(TOOLS_CHANGED);
  }

  /** Opens one session at a time. `work` MUST NOT throw. */
  async #inTurn(work: () => Promise<void>): Promise<void> {
    while (this.#opening) await this.#opening;
    const opening = work();
    this.#opening = opening;
    await opening;
    this.#opening = null;
  }

  /** Answers a request with an error, unless it is already answered or cancelled. */
  #fail(id: MessageId, error: unknown): void {
    if (!this.#out.has(id)) return;
    this.#answer(id, error);
    this.#settle(id);
  }

  #answer(id: MessageId, cause: unknown): void {
    const isOwn = cause instanceof BridgeError;
    const error = {
      code: isOwn ? cause.code : RPC.internal,
      message: wordsOf(cause),
      ...(isOwn && cause.data ? { data: cause.data } : {}),
    };
    void this.#parts.toClient(JSON.stringify({ jsonrpc: "2.0", id, error }));
  }

  #settle(id: MessageId): void {
    this.#out.delete(id);
    if (this.#out.size === 0) this.#whenDone?.();
  }
}

function note(method: string): BridgeMessage {
  return { method, text: JSON.stringify({ jsonrpc: "2.0", method }) };
}

function brokenOff(): BridgeError {
  const message = "The connection ended before the server had answered. The request may have taken effect.";
  return new BridgeError(RPC.unavailable, message);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

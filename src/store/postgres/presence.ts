import { StoreUnavailable } from "../db.ts";
import { connect, type SingleConnection } from "./driver.ts";
import { EngineError } from "./errors.ts";
import type { Timeouts } from "./limits.ts";

/** A statement that has waited for longer is a reason to ask whether the server answers at all. */
const DOUBT_MS = 1_000;
/** How often the waiting time is checked, and the pause between two questions. */
const TICK_MS = 250;
/** The server MUST answer within this many ticks. Counted in ticks, because a busy process may not have read the answer yet. */
const ANSWER_TICKS = 6;
/** While the server is away, a statement waits this long for the answer to the next question. */
const REFUSED_AFTER_MS = 500;
/** After an answer, the server is not asked again for this time: statements that still wait do so for another reason. */
const SATISFIED_MS = 2_000;

export interface PresenceParts {
  /** As the statements use it, through a pooler or directly. */
  readonly url: string;
  readonly timeouts: Timeouts;
  /** When the oldest unanswered statement was sent, by `performance.now`. Infinite if none waits. */
  readonly waitingSince: () => number;
  /** Called whenever the server has not answered: no connection is of any more use. */
  readonly onAway: () => void;
}

/**
 * Knows whether the database's server can be reached, so that calls are refused at once while it cannot, instead of each
 * waiting for its own timeout. A statement cannot tell: it may be slow, or wait for a lock. So in doubt a connection of
 * its own asks.
 */
export class Presence {
  readonly #parts: PresenceParts;
  /** When the server stopped answering, as far as is known; null while it can be reached. */
  #awaySince: number | null = null;
  #asking: Promise<void> | null = null;
  /** Resolves after the next question, whatever the answer is. */
  #next = Promise.withResolvers<void>();
  #answeredAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  readonly #timer: Timer;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => this.#look(), TICK_MS);
    this.#timer.unref();
  }

  /**
   * Undefined while the server can be reached. Otherwise the promise rejects soon, unless the server answers just now.
   * @throws EngineError if the server has just gone, so that what may run again is tried again
   * @throws StoreUnavailable if it has been away for longer than that
   */
  require(): Promise<void> | undefined {
    return this.#awaySince === null ? undefined : this.#requireNext();
  }

  async #requireNext(): Promise<void> {
    await Promise.race([this.#next.promise, Bun.sleep(REFUSED_AFTER_MS)]);
    if (this.#awaySince === null) return;
    const isLong = performance.now() - this.#awaySince >= this.#parts.timeouts.retryMs;
    throw isLong
      ? new StoreUnavailable("the database cannot be reached")
      : new EngineError("the database cannot be reached", null);
  }

  /** Asks whether the server can be reached. Called when a connection is lost or cannot be established. */
  doubt(): void {
    this.#ask(performance.now());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#asking;
  }

  #look(): void {
    const since = this.#parts.waitingSince();
    const now = performance.now();
    if (now - since > DOUBT_MS && now - this.#answeredAt > SATISFIED_MS) this.#ask(since);
  }

  #ask(since: number): void {
    if (this.#isClosed) return;
    this.#asking ??= this.#askUntilAnswered(since).finally(() => {
      this.#asking = null;
    });
  }

  async #askUntilAnswered(since: number): Promise<void> {
    while (!(await this.#isAnswered())) {
      this.#awaySince ??= since;
      this.#parts.onAway();
      this.#tellNext();
      if (this.#isClosed) return;
      await Bun.sleep(TICK_MS);
    }
    this.#awaySince = null;
    this.#answeredAt = performance.now();
    this.#tellNext();
  }

  #tellNext(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  async #isAnswered(): Promise<boolean> {
    let connection: SingleConnection | null = null;
    let isGivenUp = false;
    const answered = (async () => {
      connection = await connect(this.#parts.url, this.#parts.timeouts);
      if (isGivenUp) connection.destroy();
      else await connection.send("SELECT 1");
      return true;
    })().catch((error: unknown) => {
      if (!(error instanceof EngineError)) throw error;
      return false;
    });
    const isAnswered = await Promise.race([answered, this.#ticks()]);
    isGivenUp = true;
    (connection as SingleConnection | null)?.destroy();
    return isAnswered;
  }

  async #ticks(): Promise<false> {
    for (let tick = 0; tick < ANSWER_TICKS && !this.#isClosed; tick++) await Bun.sleep(TICK_MS);
    return false;
  }
}

import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { StoreUnavailable } from "../../store/db.ts";

/**
 * The maximum number of outcomes that wait for one workspace, a few hundred bytes each: enough for all its calls in
 * flight and a full queue of background responses.
 */
const WORKSPACE_LIMIT = 16_384;
/** The maximum number of characters in an answer that waits with its outcome. */
const TEXT_LIMIT = 1_048_576;
/**
 * The same limit for all waiting answers of one workspace, and for all workspaces together. Without it, a full disk
 * would also exhaust memory.
 */
const WORKSPACE_TEXT_LIMIT = 16 * TEXT_LIMIT;
const ALL_TEXT_LIMIT = 64 * TEXT_LIMIT;
const RETRY_MS = 1_000;

/** The outcome of a call that has ended while the store could not be written. */
export interface LateOutcome {
  readonly workspaceId: number;
  /** Seq of the call's intent. */
  readonly intent: number;
  /** The length of the text that is kept with the outcome. Default: 0. */
  readonly characters?: number;
  /** Writes and charges the outcome, completely or not at all, and releases what the call holds. */
  write(): Promise<void>;
}

/** The waiting outcomes of one workspace. */
interface Held {
  readonly outcomes: number;
  readonly characters: number;
}

const NOTHING: Held = { outcomes: 0, characters: 0 };

/**
 * Writes outcomes that the store has refused, in order, as soon as it can be written. Until then the call's
 * reservation remains, so nobody spends what the call has cost. An outcome that is still waiting when the process
 * ends is recorded and charged by the next start, which finds the call's intent without an outcome.
 */
export class LateOutcomes {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #waiting: LateOutcome[] = [];
  readonly #held = new Map<number, Held>();
  #writing: Promise<void> | null = null;
  #cancel: (() => void) | null = null;
  #isStopped = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether there is room for this much text. If not, the outcome MUST be kept without its text. */
  fits(workspaceId: number, characters: number): boolean {
    let all = characters;
    for (const held of this.#held.values()) all += held.characters;
    const own = this.#heldFor(workspaceId).characters + characters;
    return characters <= TEXT_LIMIT && own <= WORKSPACE_TEXT_LIMIT && all <= ALL_TEXT_LIMIT;
  }

  keep(outcome: LateOutcome): void {
    const { workspaceId, intent } = outcome;
    if (this.#isStopped || this.#heldFor(workspaceId).outcomes >= WORKSPACE_LIMIT) {
      this.#log.error("a call's outcome cannot be recorded and is left to the next start", { intent });
      return;
    }
    this.#log.warn("a call's outcome cannot be recorded yet", { intent });
    this.#waiting.push(outcome);
    this.#hold(outcome, 1);
    this.#retrySoon();
  }

  #heldFor(workspaceId: number): Held {
    return this.#held.get(workspaceId) ?? NOTHING;
  }

  #hold({ workspaceId, characters = 0 }: LateOutcome, sign: 1 | -1): void {
    const held = this.#heldFor(workspaceId);
    const outcomes = held.outcomes + sign;
    if (outcomes === 0) this.#held.delete(workspaceId);
    else this.#held.set(workspaceId, { outcomes, characters: held.characters + sign * characters });
  }

  /** Tries one last time. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    this.#cancel = null;
    await this.#flush();
    for (const { intent } of this.#waiting.splice(0)) {
      this.#log.error("a call's outcome cannot be recorded and is left to the next start", { intent });
    }
  }

  #retrySoon(): void {
    if (this.#isStopped) return;
    this.#cancel ??= this.#clock.after(RETRY_MS, () => {
      this.#cancel = null;
      void this.#flush();
    });
  }

  /** Never rejects. */
  async #flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
    await this.#writing;
    if (this.#waiting.length > 0) this.#retrySoon();
  }

  async #write(): Promise<void> {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const { intent } = next;
      try {
        await next.write();
        this.#log.info("a call's outcome was recorded late", { intent });
      } catch (error) {
        // Not logged again: `keep` has already warned.
        if (error instanceof StoreUnavailable) return;
        this.#log.error("a call's outcome cannot be recorded and is left to the next start", {
          intent,
          error,
        });
      }
      this.#waiting.shift();
      this.#hold(next, -1);
    }
  }
}

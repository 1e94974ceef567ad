import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Db } from "./db.ts";

const FORGET_MS = 2_000;
/** So long after a deletion a small store is written anew (some 60 ms); a larger one when the process ends in order. */
const REWRITE_MS = 5_000;
const REWRITE_BYTES = 16 * 1024 * 1024;
const REWRITE_AT_END_BYTES = 64 * 1024 * 1024;

export interface ForgettingParts {
  readonly db: Pick<Db, "forget" | "rewrite" | "wasLeftOpen">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Sees to it that what was deleted leaves every file of the store: documents, and payloads. One for all who delete, so
 * that the store is written anew once for all that they deleted.
 */
export class Forgetting {
  readonly #parts: ForgettingParts;
  #rewriting: Promise<void> = Promise.resolve();
  #cancelForget: (() => void) | null = null;
  #cancelRewrite: (() => void) | null = null;
  /** Something was deleted since the store was written anew. */
  #isStale = false;
  #stopped = false;

  constructor(parts: ForgettingParts) {
    this.#parts = parts;
  }

  /** What a process that died had deleted may be in the log still, and in pages: nobody can tell any more. */
  start(): void {
    if (!this.#parts.db.wasLeftOpen) return;
    this.forgetSoon();
    this.deleted();
  }

  /** Told after something was deleted: the store will be written anew. */
  deleted(): void {
    this.#isStale = true;
    if (this.#cancelRewrite !== null || this.#stopped) return;
    this.#cancelRewrite = this.#parts.clock.after(REWRITE_MS, () => {
      this.#cancelRewrite = null;
      this.#rewriting = this.#rewriting.then(async () => void (await this.#rewrite(REWRITE_BYTES)));
    });
  }

  /** Empties the log of what was deleted; later, where somebody reads all the time. Never throws. */
  async forget(): Promise<void> {
    const done = await this.#parts.db.forget().catch(() => false);
    if (done) return;
    this.#parts.log.warn("what was deleted stays in the log until its readers leave");
    this.forgetSoon();
  }

  /** As `forget`, for what nobody waits for. */
  forgetSoon(): void {
    if (this.#cancelForget !== null || this.#stopped) return;
    this.#cancelForget = this.#parts.clock.after(FORGET_MS, () => {
      this.#cancelForget = null;
      void this.forget();
    });
  }

  /** Does what is owed. Resolves when nothing is written any more; MUST follow the end of all who delete. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRewrite?.();
    const isOwed = this.#cancelForget !== null;
    this.#cancelForget?.();
    await this.#rewriting;
    if (this.#isStale && (await this.#rewrite(REWRITE_AT_END_BYTES))) return;
    if (isOwed) await this.#parts.db.forget().catch(() => false);
  }

  /** Never throws: what could not be done now is done after the next deletion, or at the end. */
  async #rewrite(most: number): Promise<boolean> {
    // Before it begins: what is deleted meanwhile makes it stale again.
    this.#isStale = false;
    try {
      if (await this.#parts.db.rewrite(most)) return true;
    } catch (error) {
      this.#parts.log.warn("the store will be written anew later", { error });
    }
    this.#isStale = true;
    return false;
  }
}

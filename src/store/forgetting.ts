import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { FileStore } from "./file-store.ts";

const FORGET_MS = 2_000;
/**
 * Delay after a deletion before a small store is rewritten (about 60 ms). A larger one is rewritten at an orderly
 * shutdown.
 */
const REWRITE_MS = 5_000;
const REWRITE_BYTES = 16 * 1024 * 1024;
const REWRITE_AT_END_BYTES = 64 * 1024 * 1024;

export interface ForgettingParts {
  readonly files: Pick<FileStore, "forget" | "rewrite" | "wasLeftOpen">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Removes deleted documents and payloads from every file of the store. Shared by all callers that delete, so one
 * rewrite serves all their deletions.
 */
export class Forgetting {
  readonly #parts: ForgettingParts;
  #rewriting: Promise<void> = Promise.resolve();
  #cancelForget: (() => void) | null = null;
  #cancelRewrite: (() => void) | null = null;
  /** Whether anything has been deleted since the last rewrite. */
  #isStale = false;
  #stopped = false;

  constructor(parts: ForgettingParts) {
    this.#parts = parts;
  }

  /** After a crash, deleted data may still be in the log and in pages, and nothing records whether it is. */
  start(): void {
    if (!this.#parts.files.wasLeftOpen) return;
    this.forgetSoon();
    this.deleted();
  }

  /** Reports a deletion: the store will be rewritten. */
  deleted(): void {
    this.#isStale = true;
    if (this.#cancelRewrite !== null || this.#stopped) return;
    this.#cancelRewrite = this.#parts.clock.after(REWRITE_MS, () => {
      this.#cancelRewrite = null;
      this.#rewriting = this.#rewriting.then(async () => void (await this.#rewrite(REWRITE_BYTES)));
    });
  }

  /**
   * Removes deleted data from the log, or retries later if readers keep it in use. Never throws.
   * @returns whether it is removed already
   */
  async forget(): Promise<boolean> {
    const done = await this.#parts.files.forget().catch(() => false);
    if (done) return true;
    this.#parts.log.warn(
      "deleted data stays in the write-ahead log until its readers finish; it will be tried again",
    );
    this.forgetSoon();
    return false;
  }

  /** Like `forget`, in the background. */
  forgetSoon(): void {
    if (this.#cancelForget !== null || this.#stopped) return;
    this.#cancelForget = this.#parts.clock.after(FORGET_MS, () => {
      this.#cancelForget = null;
      void this.forget();
    });
  }

  /**
   * Finishes outstanding work. Resolves when nothing is being written. MUST be called after everything that deletes
   * has stopped.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRewrite?.();
    const isOwed = this.#cancelForget !== null;
    this.#cancelForget?.();
    await this.#rewriting;
    if (this.#isStale && (await this.#rewrite(REWRITE_AT_END_BYTES))) return;
    if (isOwed) await this.#parts.files.forget().catch(() => false);
  }

  /** Never throws: if it fails, it is retried after the next deletion or at shutdown. */
  async #rewrite(most: number): Promise<boolean> {
    // Set before the rewrite begins, so a deletion during it marks the store stale again.
    this.#isStale = false;
    try {
      if (await this.#parts.files.rewrite(most)) return true;
    } catch (error) {
      this.#parts.log.warn("the store could not be rewritten; it will be tried again", { error });
    }
    this.#isStale = true;
    return false;
  }
}

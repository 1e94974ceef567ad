import type { StoreUnavailable } from "../db.ts";

/** How long urgent reads wait for a sync. A stop needs them, and a disk may hang. */
const PATIENCE_MS = 100;

/** What reads wait for while a commit is being synced. */
export class SyncWait {
  /** Set once a sync has failed: this process no longer knows what the store contains. */
  failure: StoreUnavailable | null = null;
  #pending: PromiseWithResolvers<void> | null = null;
  #patience: Promise<void> | null = null;

  /**
   * Resolves once the last commit is on disk and has been reported. Null if it has: until then, reads would return rows
   * that this process has not been notified of, and that a power failure can still remove.
   */
  get reads(): Promise<void> | null {
    return this.#pending?.promise ?? null;
  }

  /** The same, but it also resolves after `PATIENCE_MS`. */
  get urgentReads(): Promise<void> | null {
    if (!this.#pending) return null;
    this.#patience ??= withPatience(this.#pending.promise);
    return this.#patience;
  }

  begin(): void {
    this.#pending = Promise.withResolvers();
  }

  end(): void {
    this.#pending?.resolve();
    this.#pending = null;
    this.#patience = null;
  }
}

function withPatience(pending: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PATIENCE_MS);
    void pending.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

import { SEGMENTS_OF_A_SIZE } from "./merge.ts";
import type { VaultParts } from "./parts.ts";
import { swapSegments } from "./store.ts";

/** Merges the small segments of scopes into larger ones, in the background: a search reads every segment there is. */
export class Compactor {
  readonly #parts: VaultParts;
  /** Segments that scopes got since they were looked at last. */
  readonly #added = new Map<number, number>();
  readonly #running = new Map<number, Promise<void>>();
  #stopped = false;

  constructor(parts: VaultParts) {
    this.#parts = parts;
  }

  added(workspaceId: number, scopeId: number): void {
    const count = (this.#added.get(scopeId) ?? 0) + 1;
    this.#added.set(scopeId, count);
    if (count < SEGMENTS_OF_A_SIZE || this.#running.has(scopeId) || this.#stopped) return;
    this.#added.delete(scopeId);
    const running = this.#compact(workspaceId, scopeId)
      .catch((error: unknown) => {
        if (!this.#stopped) this.#parts.log.warn("segments will be merged later", { error });
      })
      .finally(() => this.#running.delete(scopeId));
    this.#running.set(scopeId, running);
  }

  /** Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running.values());
  }

  async #compact(workspaceId: number, scopeId: number): Promise<void> {
    for (let isDone = false; !isDone && !this.#stopped; ) {
      isDone = await this.#parts.locks.run(workspaceId, async () => {
        const change = await this.#parts.merger.do("compact", { scopeId });
        if (change.removed.length === 0) return true;
        await this.#parts.db.tx((tx) => swapSegments(tx, scopeId, change));
        return false;
      });
    }
  }
}

import type { VaultParts } from "../parts.ts";

/** Vectors moved in one transaction. */
const SLICE = 32;

/**
 * Compacts the vectors of scopes from which many were removed. sqlite-vec frees a block only with its last vector,
 * and fills only the newest one, so a scope that changes for years would become a series of almost empty blocks.
 */
export class Tidier {
  readonly #parts: VaultParts;
  /** Passages removed from each scope since the last check. */
  readonly #freed = new Map<number, number>();
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(parts: VaultParts) {
    this.#parts = parts;
  }

  freed(scopeId: number, passages: number): void {
    const { blocks, isAvailable } = this.#parts.vectors;
    if (!blocks) return;
    const count = (this.#freed.get(scopeId) ?? 0) + passages;
    this.#freed.set(scopeId, count);
    if (count < blocks.size || this.#stopped || !isAvailable) return;
    this.#freed.delete(scopeId);
    this.#running = this.#running
      .then(() => this.#tidy(scopeId))
      .catch((error: unknown) => {
        if (!this.#stopped)
          this.#parts.log.warn("vectors could not be compacted; it will be tried again", { error });
      });
  }

  /** Resolves when the last write has finished. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #tidy(scopeId: number): Promise<void> {
    const { db, spaces, vectors } = this.#parts;
    const { blocks } = vectors;
    if (!blocks) return;
    for (const space of spaces.all) {
      if (space.dimensions === 0) continue;
      const sparse = await blocks.sparse(db, space, scopeId);
      for (let from = 0; from < sparse.length && !this.#stopped; from += SLICE) {
        const slice = sparse.slice(from, from + SLICE);
        await db.tx(null, (tx) => blocks.move(tx, space, scopeId, slice));
      }
    }
  }
}

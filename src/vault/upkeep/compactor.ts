import type { VaultParts } from "../parts.ts";
import { swapSegments } from "../rows/documents.ts";
import { BLOCK, moveVectors, sparsePassages } from "../rows/vec0.ts";
import { SEGMENTS_OF_A_SIZE } from "../segments/plan-merge.ts";

/** A scope without new documents for this long is merged completely. */
const QUIET_MS = 2_000;

interface Scope {
  readonly workspaceId: number;
  /** Segments added since the last check. */
  added: number;
  lastAt: number;
}

/** Merges the small segments of scopes into larger ones in the background, because a search reads every segment. */
export class Compactor {
  readonly #parts: VaultParts;
  /** Scopes with new segments that are not completely merged. */
  readonly #scopes = new Map<number, Scope>();
  readonly #running = new Map<number, Promise<void>>();
  #cancel: (() => void) | null = null;
  #stopped = false;

  constructor(parts: VaultParts) {
    this.#parts = parts;
  }

  /** Continues the merges of an earlier process. */
  async start(): Promise<void> {
    const scopes = await this.#parts.db.all<{ id: number; workspace_id: number }>(
      `SELECT s.id, s.workspace_id FROM vault_scopes AS s JOIN vault_segments AS g ON g.scope_id = s.id AND g.live = 1
       GROUP BY s.id HAVING count(*) > 1`,
    );
    for (const { id, workspace_id: workspaceId } of scopes) this.added(workspaceId, id);
  }

  added(workspaceId: number, scopeId: number): void {
    if (this.#stopped) return;
    const scope = this.#scopes.get(scopeId) ?? { workspaceId, added: 0, lastAt: 0 };
    scope.added += 1;
    scope.lastAt = this.#parts.clock.monotonic();
    this.#scopes.set(scopeId, scope);
    this.#cancel ??= this.#parts.clock.after(QUIET_MS, () => this.#sweep());
    if (scope.added < SEGMENTS_OF_A_SIZE || this.#running.has(scopeId)) return;
    scope.added = 0;
    this.#start(scopeId, workspaceId, false);
  }

  /** Resolves when the last write has finished. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await Promise.all(this.#running.values());
  }

  #sweep(): void {
    this.#cancel = null;
    const now = this.#parts.clock.monotonic();
    for (const [scopeId, { workspaceId, lastAt }] of this.#scopes) {
      if (now - lastAt < QUIET_MS || this.#running.has(scopeId)) continue;
      this.#scopes.delete(scopeId);
      this.#start(scopeId, workspaceId, true);
    }
    if (this.#scopes.size > 0 && !this.#stopped) {
      this.#cancel = this.#parts.clock.after(QUIET_MS, () => this.#sweep());
    }
  }

  #start(scopeId: number, workspaceId: number, isQuiet: boolean): void {
    const running = this.#compact(workspaceId, scopeId, isQuiet)
      .catch((error: unknown) => {
        if (!this.#stopped)
          this.#parts.log.warn("segments could not be merged; it will be tried again", { error });
      })
      .finally(() => this.#running.delete(scopeId));
    this.#running.set(scopeId, running);
  }

  async #compact(workspaceId: number, scopeId: number, isQuiet: boolean): Promise<void> {
    for (let isDone = false; !isDone && !this.#stopped; ) {
      isDone = await this.#parts.locks.run(workspaceId, async () => {
        const change = await this.#parts.merger.do("compact", { scopeId, isQuiet }, { workspaceId });
        if (change.removed.length === 0) return true;
        await this.#parts.db.tx(null, async (tx) => swapSegments(tx, scopeId, change), {
          turnOf: workspaceId,
        });
        return false;
      });
    }
  }
}

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
    const count = (this.#freed.get(scopeId) ?? 0) + passages;
    this.#freed.set(scopeId, count);
    if (count < BLOCK || this.#stopped || !this.#parts.spaces.isAvailable) return;
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
    const { db, spaces } = this.#parts;
    for (const space of spaces.all) {
      if (space.dimensions === 0) continue;
      const sparse = await sparsePassages(db, space, scopeId);
      for (let from = 0; from < sparse.length && !this.#stopped; from += SLICE) {
        const slice = sparse.slice(from, from + SLICE);
        await db.tx(null, (tx) => moveVectors(tx, space, scopeId, slice));
      }
    }
  }
}

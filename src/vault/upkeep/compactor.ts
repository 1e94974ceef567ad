import type { Tx } from "../../store/db.ts";
import type { SegmentChange } from "../messages.ts";
import type { VaultParts } from "../parts.ts";
import { Raced } from "../raced.ts";
import { swapSegments } from "../rows/documents.ts";
import type { Space } from "../rows/spaces.ts";
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

  /** Continues the merges of another process, also after `stop`. */
  async start(): Promise<void> {
    this.#stopped = false;
    const { db, vectors } = this.#parts;
    const scopes = await db.all<{ id: number; workspace_id: number }>(
      `SELECT s.id, s.workspace_id FROM vault_scopes AS s JOIN vault_segments AS g ON g.scope_id = s.id AND g.live = 1
       GROUP BY s.id HAVING count(*) > 1`,
    );
    for (const { id, workspace_id: workspaceId } of scopes) this.added(workspaceId, id);
    if (!vectors.segments) return;
    for (const { id, workspaceId } of await vectors.segments.unmerged(db)) this.added(workspaceId, id);
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
    this.#cancel = null;
    this.#scopes.clear();
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
        if (this.#stopped) return;
        // Another node has changed the scope in the meantime. It is merged together with what was added to it.
        if (error instanceof Raced) this.added(workspaceId, scopeId);
        else this.#parts.log.warn("segments could not be merged; it will be tried again", { error });
      })
      .finally(() => this.#running.delete(scopeId));
    this.#running.set(scopeId, running);
  }

  async #compact(workspaceId: number, scopeId: number, isQuiet: boolean): Promise<void> {
    const { spaces, vectors } = this.#parts;
    await this.#merge(workspaceId, { scopeId, isQuiet, space: null }, (tx, change) =>
      swapSegments(tx, scopeId, change),
    );
    const { segments } = vectors;
    if (!segments) return;
    const isCopied = (space: Space) => space.dimensions > 0 && segments.isFor(space);
    for (const space of spaces.all.filter(isCopied)) {
      await this.#merge(workspaceId, { scopeId, isQuiet, space: space.id }, (tx, change) =>
        segments.swap(tx, space, scopeId, change),
      );
    }
  }

  async #merge(
    workspaceId: number,
    request: { readonly scopeId: number; readonly isQuiet: boolean; readonly space: number | null },
    swap: (tx: Tx, change: SegmentChange) => Promise<void>,
  ): Promise<void> {
    for (let isDone = false; !isDone && !this.#stopped; ) {
      isDone = await this.#parts.locks.run(workspaceId, async () => {
        const change = await this.#parts.merger.do("compact", request, { workspaceId });
        if (change.removed.length === 0) return true;
        await this.#parts.db.tx(null, (tx) => swap(tx, change), { turnOf: workspaceId });
        return false;
      });
    }
  }
}

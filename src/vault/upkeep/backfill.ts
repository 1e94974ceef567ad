import { type Embedder, EmbeddingFailed } from "../../models/embed/embedder.ts";
import { type Turn, WorkspaceRoundRobin } from "../../reading/workspace-round-robin.ts";
import type { Sql, Tx } from "../../store/db.ts";
import { type PassageToEmbed, vectorsOf } from "../embed-passages.ts";
import type { VaultParts } from "../parts.ts";
import { readText } from "../rows/documents.ts";
import { documentOf, PER_DOCUMENT } from "../rows/keys.ts";
import { type Space, WrongDimension } from "../rows/spaces.ts";
import type { PassageVector } from "../rows/vector-store.ts";
import { LEXICAL_SPACE } from "../terms/lexical.ts";

/** `BATCH`: passages sent to a model at once. `SLICE`: vectors written in one transaction. */
const BATCH = 64;
const SLICE = 32;
const FIRST_WAIT_MS = 1_000;
const LAST_WAIT_MS = 60_000;
/** When to retry a passage that the model refused: by then, the model may have changed. */
const REFUSED_MS = 86_400_000;
const IDLE_MS = 5_000;
/** How long writers stop waiting for a model after it was once too slow. */
const SLOW_MS = 600_000;

interface MissingVector extends PassageToEmbed {
  readonly key: number;
  readonly workspaceId: number;
  readonly scopeId: number;
  readonly scope: string;
}

/** Null: the passage has no vector and never will. Undefined: the vector is not available now. */
type VectorResult = Float32Array | null | undefined;

interface MissingRow {
  readonly key: number;
  readonly workspace_id: number;
  readonly scope_id: number;
  readonly scope: string;
  readonly title: string;
  readonly start: number;
  readonly end: number;
  readonly hash: Uint8Array;
}

/** The back-off of a space whose model failed: it is tried again at `until`, and then after twice the wait. */
interface SpaceBackoff {
  readonly until: number;
  readonly wait: number;
}

/** Returns the model of a space. Null if it is not configured. */
export type EmbedderOf = (space: Space) => Embedder | null;

/** A document with passages that wait for vectors. */
export interface WaitingDocument extends Turn {
  readonly key: number;
}

/** Maximum number of documents remembered for their workspace's turn. Others are filled in storage order. */
const REMEMBERED = { perWorkspace: 1_000, total: 10_000 };

/**
 * Fills in missing vectors in the background: those that a model could not provide when the document was written, and
 * all of them after another model was configured. A completely filled space replaces the old one.
 */
export class Filler {
  readonly #parts: VaultParts;
  readonly #embedderOf: EmbedderOf;
  readonly #added: (workspaceId: number, scopeId: number) => void;
  readonly #rests = new Map<number, SpaceBackoff>();
  /** Until when the model of a space counts as too slow for writers. */
  readonly #slow = new Map<number, number>();
  /**
   * Documents written since the start that wait for vectors. Kept only in memory: the store lists all missing
   * vectors, oldest first.
   */
  readonly #turns = new WorkspaceRoundRobin<WaitingDocument>(REMEMBERED);
  #isTurnOfOldest = false;
  #cancel: (() => void) | null = null;
  /** Aborted when it is stopped, and replaced when it is started again. */
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  /** `added`: called with each scope that has got vectors. */
  constructor(
    parts: VaultParts,
    embedderOf: EmbedderOf,
    added: (workspaceId: number, scopeId: number) => void = () => {},
  ) {
    this.#parts = parts;
    this.#embedderOf = embedderOf;
    this.#added = added;
  }

  /** Begins, also after `stop`. */
  start(): void {
    if (!this.#parts.spaces.isAvailable) return;
    this.#stopping = new AbortController();
    this.#schedule(0, this.#stopping.signal);
  }

  /** Resolves when nothing is being written. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel?.();
    this.#cancel = null;
    await this.#running;
  }

  /**
   * Remembers a waiting document and ends the current pause. Every other batch comes from such a document, with
   * workspaces taking turns, so no workspace waits for everything that another one has written.
   */
  wake(document: WaitingDocument): void {
    if (this.#turns.hasRoom(document.workspaceId)) this.#turns.add(document);
    if (this.#cancel === null) return;
    this.#cancel();
    this.#schedule(0, this.#stopping.signal);
  }

  /** Whether the model recently failed or is slow, so writers do not wait for it. */
  isNotWaitedFor(space: Space): boolean {
    const until = Math.max(this.#rests.get(space.id)?.until ?? 0, this.#slow.get(space.id) ?? 0);
    return until > this.#parts.clock.monotonic();
  }

  /** Reports that the space's model has answered. */
  recovered(space: Space): void {
    this.#rests.delete(space.id);
  }

  /** Whether the model recently failed, so searches do not use it. */
  isResting(space: Space): boolean {
    return (this.#rests.get(space.id)?.until ?? 0) > this.#parts.clock.monotonic();
  }

  /**
   * Reports that a writer waited in vain for the space's model. From then on, its vectors are only filled in here.
   */
  slow(space: Space): void {
    this.#slow.set(space.id, this.#parts.clock.monotonic() + SLOW_MS);
  }

  /** Reports that the space's model failed. @returns the milliseconds until it is tried again */
  rest(space: Space, retryAfterMs = 0): number {
    const wait = Math.min((this.#rests.get(space.id)?.wait ?? FIRST_WAIT_MS / 2) * 2, LAST_WAIT_MS);
    const until = this.#parts.clock.monotonic() + Math.max(wait, retryAfterMs);
    this.#rests.set(space.id, { until, wait });
    return Math.max(wait, retryAfterMs);
  }

  #schedule(ms: number, stopping: AbortSignal): void {
    if (stopping.aborted) return;
    this.#cancel = this.#parts.clock.after(ms, () => {
      this.#cancel = null;
      this.#running = this.#running.then(() => this.#turn(stopping));
    });
  }

  async #turn(stopping: AbortSignal): Promise<void> {
    const { spaces, clock } = this.#parts;
    let next = IDLE_MS;
    for (const space of spaces.written) {
      const rest = (this.#rests.get(space.id)?.until ?? 0) - clock.monotonic();
      if (rest > 0) {
        next = Math.min(next, rest);
        continue;
      }
      try {
        const more = await this.#fill(space, stopping);
        if (more === null) continue;
        this.#rests.delete(space.id);
        if (more) next = 0;
      } catch (error) {
        if (stopping.aborted) return;
        next = Math.min(next, this.#failed(space, error));
      }
    }
    try {
      if (await spaces.drop()) next = 0;
    } catch (error) {
      this.#parts.log.warn("vectors of an earlier model could not be removed; it will be tried again", {
        error,
      });
    }
    this.#schedule(next, stopping);
  }

  #failed(space: Space, error: unknown): number {
    const { log } = this.#parts;
    if (error instanceof EmbeddingFailed) {
      log.warn("passages are waiting for their vectors", { space: space.name, reason: error.reason });
      return this.rest(space, error.retryAfterMs);
    }
    if (error instanceof WrongDimension) {
      log.error("the embedding model has changed; word search still works", {
        space: space.name,
        problem: error.message,
      });
    } else log.warn("passages are waiting for their vectors", { space: space.name, error });
    return this.rest(space);
  }

  /** @returns whether there may be more to do; null if no vector is missing or none can be computed */
  async #fill(space: Space, stopping: AbortSignal): Promise<boolean | null> {
    const { db, spaces, clock } = this.#parts;
    const isLexical = space.name === LEXICAL_SPACE;
    const embedder = isLexical ? null : this.#embedderOf(space);
    // A space whose model is no longer configured is kept in case the change is undone.
    if (!isLexical && embedder === null) return null;
    const missing = await this.#nextBatch(space, isLexical);
    if (missing === null) {
      const left = await db.get(
        "SELECT 1 FROM vault_pending WHERE space_id = $1 AND retry_at <= $2 LIMIT 1",
        [space.id, clock.now()],
      );
      if (left || space.state !== "filling") return left === undefined ? null : true;
      if (await spaces.swap(space)) {
        this.#parts.log.info("the vault is now searched with another model", { space: space.name });
      }
      return null;
    }
    const vectors = embedder ? await this.#embed(embedder, missing, stopping) : await this.#lexical(missing);
    await this.#store(space, missing, vectors);
    return true;
  }

  /** Alternates between a remembered document and the oldest passages. Null if no vector is missing. */
  async #nextBatch(space: Space, isLexical: boolean): Promise<readonly MissingVector[] | null> {
    this.#isTurnOfOldest = !this.#isTurnOfOldest;
    const document = isLexical || this.#isTurnOfOldest ? undefined : this.#turns.take();
    const missing = document && (await this.#missing(space, keysOf(document.key)));
    if (!document || !missing) return this.#missing(space, ALL_KEYS);
    if (missing.length > 0 && this.#turns.hasRoom(document.workspaceId)) this.#turns.add(document);
    return missing;
  }

  /** Null if no vector is missing. Empty if the passages listed as missing already have vectors or are gone. */
  async #missing(space: Space, [first, last]: KeyRange): Promise<readonly MissingVector[] | null> {
    const { db, clock, vectors } = this.#parts;
    const keys = await db.all<{ chunk_key: number }>(
      `SELECT chunk_key FROM vault_pending WHERE space_id = $1 AND retry_at <= $2 AND chunk_key BETWEEN $4 AND $5
       ORDER BY chunk_key LIMIT $3`,
      [space.id, clock.now(), BATCH, first, last],
    );
    if (keys.length === 0) return null;
    const missing: MissingVector[] = [];
    const done: number[] = [];
    for (const { chunk_key: key } of keys) {
      const row = await findMissing(db, key);
      if (!row || (space.dimensions > 0 && (await vectors.has(db, space, key)))) {
        done.push(key);
        continue;
      }
      const text = await readText(db, documentOf(key), row.start, row.end);
      missing.push({
        key,
        workspaceId: row.workspace_id,
        scopeId: row.scope_id,
        scope: row.scope,
        title: row.title,
        text,
        hash: row.hash,
      });
    }
    if (done.length > 0) await db.tx(null, async (tx) => cross(tx, space, done));
    return missing;
  }

  async #embed(
    embedder: Embedder,
    missing: readonly MissingVector[],
    stopping: AbortSignal,
  ): Promise<readonly (Float32Array | null)[]> {
    const vectors = new Map<number, Float32Array | null>();
    for (const group of Map.groupBy(missing, (each) => each.scopeId).values()) {
      const [first] = group;
      if (!first) continue;
      const made = await vectorsOf(this.#parts, embedder, first, group, stopping);
      for (const [index, { key }] of group.entries()) vectors.set(key, made[index] ?? null);
    }
    return missing.map(({ key }) => vectors.get(key) ?? null);
  }

  /**
   * Reads lexical vectors from the index, which has them from when the document was written, whatever space is
   * searched.
   */
  async #lexical(missing: readonly MissingVector[]): Promise<readonly VectorResult[]> {
    const vectors = new Map<number, VectorResult>();
    for (const [scopeId, group] of Map.groupBy(missing, (each) => each.scopeId)) {
      const [first] = group;
      if (!first) continue;
      const keys = group.map(({ key }) => key);
      const { workspaceId } = first;
      const held = await this.#parts.merger.do("vectors", { scopeId, keys }, { workspaceId });
      for (const [index, key] of keys.entries()) vectors.set(key, held[index]);
    }
    return missing.map(({ key }) => vectors.get(key));
  }

  async #store(
    given: Space,
    missing: readonly MissingVector[],
    vectors: readonly VectorResult[],
  ): Promise<void> {
    const { db, spaces } = this.#parts;
    const first = vectors.find((vector) => vector instanceof Float32Array);
    if (first && given.dimensions !== first.length) await spaces.dimension(given, first.length);
    const space = spaces.fresh(given);
    for (let from = 0; from < missing.length; from += SLICE) {
      const slice = missing.slice(from, from + SLICE);
      await db.tx(null, (tx) => this.#storeSlice(tx, space, slice, vectors.slice(from, from + SLICE)));
    }
    const scopes = new Map(missing.map(({ scopeId, workspaceId }) => [scopeId, workspaceId]));
    for (const [scopeId, workspaceId] of scopes) this.#added(workspaceId, scopeId);
  }

  async #storeSlice(
    tx: Tx,
    space: Space,
    missing: readonly MissingVector[],
    results: readonly VectorResult[],
  ): Promise<void> {
    const { claims, vectors } = this.#parts;
    await claims.keepShown(tx, [...new Set(missing.map(({ key }) => documentOf(key)))]);
    const known = new Map<number, PassageVector[]>();
    for (const [index, { key, scopeId }] of missing.entries()) {
      const vector = results[index];
      if (this.#isLeft(tx, space, key, vector)) continue;
      // If the passage was deleted in the meantime, its vector MUST NOT come back.
      if (vector && (await findMissing(tx, key))) {
        const found = known.get(scopeId);
        if (found) found.push({ key, vector });
        else known.set(scopeId, [{ key, vector }]);
      }
      cross(tx, space, [key]);
    }
    for (const [scopeId, found] of known) await vectors.fill(tx, space, scopeId, found);
  }

  /** Whether there is no vector now, so it is asked for again later. */
  #isLeft(tx: Tx, space: Space, key: number, vector: VectorResult): boolean {
    // A passage without words has no lexical vector. A model that returns none for it may be replaced some day.
    const isRefused = vector === null && space.name !== LEXICAL_SPACE;
    if (!isRefused && vector !== undefined) return false;
    tx.write("UPDATE vault_pending SET retry_at = $3 WHERE space_id = $1 AND chunk_key = $2", [
      space.id,
      key,
      this.#parts.clock.now() + (isRefused ? REFUSED_MS : LAST_WAIT_MS),
    ]);
    return true;
  }
}

/** Keys of passages, both ends inclusive. */
type KeyRange = readonly [first: number, last: number];

const ALL_KEYS: KeyRange = [0, Number.MAX_SAFE_INTEGER];

function keysOf(document: number): KeyRange {
  return [document * PER_DOCUMENT, (document + 1) * PER_DOCUMENT - 1];
}

function cross(tx: Tx, space: Space, keys: readonly number[]): void {
  for (const key of keys) {
    tx.write("DELETE FROM vault_pending WHERE space_id = $1 AND chunk_key = $2", [space.id, key]);
  }
}

function findMissing(sql: Sql, key: number): Promise<MissingRow | undefined> {
  return sql.get<MissingRow>(
    `SELECT c.key, d.workspace_id, d.scope_id, s.path AS scope, d.title, c."start", c."end", c.hash
     FROM vault_chunks AS c JOIN vault_documents AS d ON d.key = $2 JOIN vault_scopes AS s ON s.id = d.scope_id WHERE c.key = $1 AND d.state <> 'removing'`,
    [key, documentOf(key)],
  );
}

import { type Embedder, EmbeddingFailed } from "../../models/embed/embedder.ts";
import { type Turn, WorkspaceRoundRobin } from "../../reading/workspace-round-robin.ts";
import type { Sql, Tx } from "../../store/db.ts";
import { vectorsOf, type Wanted } from "../embed-passages.ts";
import type { VaultParts } from "../parts.ts";
import { readText } from "../rows/documents.ts";
import { documentOf, PER_DOCUMENT } from "../rows/keys.ts";
import { hasVector, insertVector, type Space, WrongDimension } from "../rows/spaces.ts";
import { LEXICAL_SPACE } from "../terms/lexical.ts";

/** Passages that a model is asked for at once, and those whose vectors are written in one transaction. */
const BATCH = 64;
const SLICE = 32;
const FIRST_WAIT_MS = 1_000;
const LAST_WAIT_MS = 60_000;
/** A passage that the model refuses is asked for again after a day: the model may be another one by then. */
const REFUSED_MS = 86_400_000;
const IDLE_MS = 5_000;
/** So long no writer waits for a model that was too slow for one. */
const SLOW_MS = 600_000;

interface Missing extends Wanted {
  readonly key: number;
  readonly workspaceId: number;
  readonly scopeId: number;
  readonly scope: string;
}

/** Null: it has none, and will have none. Undefined: it cannot be had now. */
type Found = Float32Array | null | undefined;

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

/** Of a space whose model failed: it is asked again at `until`, then after twice as long. */
interface Rest {
  readonly until: number;
  readonly wait: number;
}

/** The model of a space; null where it is not configured. */
export type EmbedderOf = (space: Space) => Embedder | null;

/** A document whose passages wait for vectors. */
interface WaitingDocument extends Turn {
  readonly key: number;
}

/** Documents that are remembered for their workspace's turn. Those past that wait with everything else. */
const REMEMBERED = { perWorkspace: 1_000, total: 10_000 };

/**
 * Gives passages the vectors that they lack, in the background: what a model could not give when the document was written,
 * and everything, after another model was configured. What was filled completely takes the old space's place.
 */
export class Filler {
  readonly #parts: VaultParts;
  readonly #embedderOf: EmbedderOf;
  readonly #rests = new Map<number, Rest>();
  /** Spaces whose model is too slow for a writer, until when. */
  readonly #slow = new Map<number, number>();
  /** Documents written since the start that wait. Memory only: what waits is in the store, oldest first. */
  readonly #turns = new WorkspaceRoundRobin<WaitingDocument>(REMEMBERED);
  #isTurnOfOldest = false;
  #cancel: (() => void) | null = null;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(parts: VaultParts, embedderOf: EmbedderOf) {
    this.#parts = parts;
    this.#embedderOf = embedderOf;
  }

  start(): void {
    if (this.#parts.spaces.isAvailable) this.#schedule(0);
  }

  /** Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel?.();
    await this.#running;
  }

  /**
   * Remembers that a document waits, and looks at once for what is missing, if it is waiting to look. Every other batch is of
   * such a document, for which workspaces take turns, so that nobody waits behind all that another workspace has written.
   */
  wake(document: WaitingDocument): void {
    if (this.#turns.hasRoom(document.workspaceId)) this.#turns.add(document);
    if (this.#cancel === null) return;
    this.#cancel();
    this.#schedule(0);
  }

  /** The model failed a moment ago, or is slow: a writer does not wait for it. */
  isNotWaitedFor(space: Space): boolean {
    const until = Math.max(this.#rests.get(space.id)?.until ?? 0, this.#slow.get(space.id) ?? 0);
    return until > this.#parts.clock.monotonic();
  }

  /** The space's model has answered. */
  recovered(space: Space): void {
    this.#rests.delete(space.id);
  }

  /** The model failed a moment ago: a search does not ask it. */
  isResting(space: Space): boolean {
    return (this.#rests.get(space.id)?.until ?? 0) > this.#parts.clock.monotonic();
  }

  /** Remembers that a writer waited for the space's model in vain: what it would give is asked for here alone. */
  slow(space: Space): void {
    this.#slow.set(space.id, this.#parts.clock.monotonic() + SLOW_MS);
  }

  /** Remembers that the space's model failed. @returns in how many milliseconds it is asked again */
  rest(space: Space, retryAfterMs = 0): number {
    const wait = Math.min((this.#rests.get(space.id)?.wait ?? FIRST_WAIT_MS / 2) * 2, LAST_WAIT_MS);
    const until = this.#parts.clock.monotonic() + Math.max(wait, retryAfterMs);
    this.#rests.set(space.id, { until, wait });
    return Math.max(wait, retryAfterMs);
  }

  #schedule(ms: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#cancel = this.#parts.clock.after(ms, () => {
      this.#cancel = null;
      this.#running = this.#turn();
    });
  }

  async #turn(): Promise<void> {
    const { spaces, clock } = this.#parts;
    let next = IDLE_MS;
    for (const space of spaces.written) {
      const rest = (this.#rests.get(space.id)?.until ?? 0) - clock.monotonic();
      if (rest > 0) {
        next = Math.min(next, rest);
        continue;
      }
      try {
        const more = await this.#fill(space);
        if (more === null) continue;
        this.#rests.delete(space.id);
        if (more) next = 0;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        next = Math.min(next, this.#failed(space, error));
      }
    }
    try {
      if (await spaces.drop()) next = 0;
    } catch (error) {
      this.#parts.log.warn("vectors of an earlier model will be removed later", { error });
    }
    this.#schedule(next);
  }

  #failed(space: Space, error: unknown): number {
    const { log } = this.#parts;
    if (error instanceof EmbeddingFailed) {
      log.warn("passages wait for their vectors", { space: space.name, reason: error.reason });
      return this.rest(space, error.retryAfterMs);
    }
    if (error instanceof WrongDimension) {
      log.error("the embedding model is not the one that it was; words are still found", {
        space: space.name,
        problem: error.message,
      });
    } else log.warn("passages wait for their vectors", { space: space.name, error });
    return this.rest(space);
  }

  /** @returns whether there may be more to do; null where nothing was missing, or nobody can give it */
  async #fill(space: Space): Promise<boolean | null> {
    const { db, spaces, clock } = this.#parts;
    const isLexical = space.name === LEXICAL_SPACE;
    const embedder = isLexical ? null : this.#embedderOf(space);
    // A space of a model that is not configured any more waits for the way back.
    if (!isLexical && embedder === null) return null;
    const missing = await this.#nextBatch(space, isLexical);
    if (missing === null) {
      const left = await db.get(
        "SELECT 1 FROM vault_pending WHERE space_id = $1 AND retry_at <= $2 LIMIT 1",
        [space.id, clock.now()],
      );
      if (left || space.state !== "filling") return left === undefined ? null : true;
      await spaces.swap(space);
      this.#parts.log.info("the vault is searched with another model", { space: space.name });
      return null;
    }
    const vectors = embedder ? await this.#embed(embedder, missing) : await this.#lexical(missing);
    await this.#store(space, missing, vectors);
    return true;
  }

  /** By turns one of a document that was remembered, and of the oldest. Null if nothing is missing. */
  async #nextBatch(space: Space, isLexical: boolean): Promise<readonly Missing[] | null> {
    this.#isTurnOfOldest = !this.#isTurnOfOldest;
    const document = isLexical || this.#isTurnOfOldest ? undefined : this.#turns.take();
    const missing = document && (await this.#missing(space, keysOf(document.key)));
    if (!document || !missing) return this.#missing(space, ALL_KEYS);
    if (missing.length > 0 && this.#turns.hasRoom(document.workspaceId)) this.#turns.add(document);
    return missing;
  }

  /** Null if nothing is missing. A list that is empty was put down, but is there or gone already. */
  async #missing(space: Space, [first, last]: KeyRange): Promise<readonly Missing[] | null> {
    const { db, clock } = this.#parts;
    const keys = await db.all<{ chunk_key: number }>(
      `SELECT chunk_key FROM vault_pending WHERE space_id = $1 AND retry_at <= $2 AND chunk_key BETWEEN $4 AND $5
       ORDER BY chunk_key LIMIT $3`,
      [space.id, clock.now(), BATCH, first, last],
    );
    if (keys.length === 0) return null;
    const missing: Missing[] = [];
    const done: number[] = [];
    for (const { chunk_key: key } of keys) {
      const row = await findMissing(db, key);
      if (!row || (space.dimensions > 0 && (await hasVector(db, space, key)))) {
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
    if (done.length > 0) await db.tx((tx) => cross(tx, space, done));
    return missing;
  }

  async #embed(embedder: Embedder, missing: readonly Missing[]): Promise<readonly (Float32Array | null)[]> {
    const vectors = new Map<number, Float32Array | null>();
    for (const group of Map.groupBy(missing, (each) => each.scopeId).values()) {
      const [first] = group;
      if (!first) continue;
      const made = await vectorsOf(this.#parts, embedder, first, group, this.#stopping.signal);
      for (const [index, { key }] of group.entries()) vectors.set(key, made[index] ?? null);
    }
    return missing.map(({ key }) => vectors.get(key) ?? null);
  }

  /** The index holds these, whatever space is searched: what it has is what was made when the document was written. */
  async #lexical(missing: readonly Missing[]): Promise<readonly Found[]> {
    const vectors = new Map<number, Found>();
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

  async #store(given: Space, missing: readonly Missing[], vectors: readonly Found[]): Promise<void> {
    const { db, spaces } = this.#parts;
    const first = vectors.find((vector) => vector instanceof Float32Array);
    if (first && given.dimensions !== first.length) await spaces.dimension(given, first.length);
    const space = spaces.fresh(given);
    for (let from = 0; from < missing.length; from += SLICE) {
      await db.tx(async (tx) => {
        for (const [index, each] of missing.slice(from, from + SLICE).entries())
          await this.#storeOne(tx, space, each, vectors[from + index]);
      });
    }
  }

  async #storeOne(tx: Tx, space: Space, { key, scopeId }: Missing, vector: Found): Promise<void> {
    // Without words a passage has no lexical vector. A model that gives none for it may be another one some day.
    const isRefused = vector === null && space.name !== LEXICAL_SPACE;
    if (isRefused || vector === undefined) {
      await tx.run("UPDATE vault_pending SET retry_at = $3 WHERE space_id = $1 AND chunk_key = $2", [
        space.id,
        key,
        this.#parts.clock.now() + (isRefused ? REFUSED_MS : LAST_WAIT_MS),
      ]);
      return;
    }
    // Deleted while the model was asked: its vector must not come back.
    if (vector && (await findMissing(tx, key))) await insertVector(tx, space, scopeId, key, vector);
    await cross(tx, space, [key]);
  }
}

/** Keys of passages, both ends included. */
type KeyRange = readonly [first: number, last: number];

const ALL_KEYS: KeyRange = [0, Number.MAX_SAFE_INTEGER];

function keysOf(document: number): KeyRange {
  return [document * PER_DOCUMENT, (document + 1) * PER_DOCUMENT - 1];
}

async function cross(tx: Tx, space: Space, keys: readonly number[]): Promise<void> {
  for (const key of keys) {
    await tx.run("DELETE FROM vault_pending WHERE space_id = $1 AND chunk_key = $2", [space.id, key]);
  }
}

function findMissing(sql: Sql, key: number): Promise<MissingRow | undefined> {
  return sql.get<MissingRow>(
    `SELECT c.key, d.workspace_id, d.scope_id, s.path AS scope, d.title, c."start", c."end", c.hash
     FROM vault_chunks AS c JOIN vault_documents AS d ON d.key = $2 JOIN vault_scopes AS s ON s.id = d.scope_id WHERE c.key = $1 AND d.state <> 'removing'`,
    [key, documentOf(key)],
  );
}

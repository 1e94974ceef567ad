import { Database } from "bun:sqlite";
import { type Boundary, ROOT_SCOPE, rangeBelow } from "../access/memory-scope.ts";
import {
  type IndexState,
  type IndexStore,
  IndexUnreadable,
  type SegmentPlace,
  type SegmentRange,
  type SpaceVector,
  type StoredPassage,
} from "./index-store.ts";
import { documentOf, PER_DOCUMENT } from "./rows/keys.ts";
import { cutPages, pageKeys, type TextPage } from "./rows/pages.ts";
import { VEC_ENTRY, vectorTable } from "./rows/vector-table.ts";
import { byScore, type Scored, TopK } from "./search/top-k.ts";

/** Small, because data that is read often is kept in the segments. */
const PAGE_CACHE_KB = 4_096;
/** vec0's limit for `k`. */
const VECTOR_LIMIT = 4_096;
/** Scopes per query. Each returns `k` rows. */
const SCOPES_AT_ONCE = 64;

/** Errors of the file, the disk or a lock. Any other is a bug. */
const STORE = /^SQLITE_(BUSY|LOCKED|IOERR|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL|FULL)/;

const LIVE_OF_WORKSPACE = `SELECT g.id, g.scope_id AS scopeId FROM vault_scopes AS s
  CROSS JOIN vault_segments AS g ON g.scope_id = s.id AND g.live = 1 WHERE s.workspace_id = ?1`;

/**
 * The index in SQLite's file, read through a connection of its own, which sees only committed data and blocks nobody.
 * Opened by the first `read`. Each read of a state is done when it returns, as `bun:sqlite` is synchronous.
 */
export class SqliteIndex implements IndexStore {
  readonly #path: string;
  readonly #extension: string | null;
  #database: Database | null = null;

  /** `extension`: the path of sqlite-vec, or null if this platform has none. */
  constructor(path: string, extension: string | null) {
    this.#path = path;
    this.#extension = extension;
  }

  async read<Result>(work: (state: IndexState) => Promise<Result>): Promise<Result> {
    try {
      const database = this.#open();
      database.exec("BEGIN");
      try {
        return await work(new SqliteState(database));
      } finally {
        database.exec("COMMIT");
      }
    } catch (error) {
      throw isOfStore(error) ? new IndexUnreadable(error) : error;
    }
  }

  async close(): Promise<void> {
    this.#database?.close();
    this.#database = null;
  }

  #open(): Database {
    if (this.#database) return this.#database;
    const database = new Database(this.#path, { readonly: true, strict: true });
    if (this.#extension !== null) database.loadExtension(this.#extension, VEC_ENTRY);
    database.exec("PRAGMA query_only = ON");
    database.exec("PRAGMA temp_store = MEMORY");
    database.exec(`PRAGMA cache_size = -${PAGE_CACHE_KB}`);
    database.exec("PRAGMA busy_timeout = 1000");
    this.#database = database;
    return database;
  }
}

class SqliteState implements IndexState {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async segments(range: SegmentRange): Promise<SegmentPlace[]> {
    if ("scopeId" in range) {
      return this.#database
        .query<SegmentPlace, [number]>(
          "SELECT id, scope_id AS scopeId FROM vault_segments WHERE scope_id = ?1 AND live = 1 ORDER BY id",
        )
        .all(range.scopeId);
    }
    return range.boundary.flatMap((path) => this.#segmentsBelow(range.workspaceId, path));
  }

  #segmentsBelow(workspaceId: number, path: Boundary[number]): SegmentPlace[] {
    if (path === ROOT_SCOPE) {
      return this.#database.query<SegmentPlace, [number]>(LIVE_OF_WORKSPACE).all(workspaceId);
    }
    // Two indexed look-ups: with OR, SQLite would scan all scopes.
    return this.#database
      .query<SegmentPlace, [number, string, string, string]>(
        `${LIVE_OF_WORKSPACE} AND s.path = ?2 UNION ALL ${LIVE_OF_WORKSPACE} AND s.path > ?3 AND s.path < ?4`,
      )
      .all(workspaceId, path, ...rangeBelow(path));
  }

  async readSegments(ids: readonly number[], take: (id: number, bytes: Uint8Array) => void): Promise<void> {
    const select = this.#database.query<{ data: Uint8Array }, [number]>(
      "SELECT data FROM vault_segments WHERE id = ?1",
    );
    for (const id of ids) {
      const row = select.get(id);
      if (!row) throw new Error("an index segment is gone");
      take(id, row.data);
    }
  }

  async documentsWith(
    scopes: readonly number[],
    hashes: readonly Uint8Array[],
  ): Promise<ReadonlySet<number>> {
    let found: Set<number> | null = null;
    for (const hash of hashes) {
      const rows = this.#database
        .query<{ document_key: number }, [Uint8Array, string]>(
          `SELECT m.document_key FROM json_each(?2) AS s
           CROSS JOIN vault_metadata AS m ON m.scope_id = s.value AND m.hash = ?1`,
        )
        .all(hash, JSON.stringify(scopes));
      const keys = new Set(rows.map((row) => row.document_key));
      found = found === null ? keys : found.intersection(keys);
    }
    return found ?? new Set();
  }

  async similarities(
    { space, vector }: SpaceVector,
    passages: readonly number[],
  ): Promise<Map<number, number>> {
    const rows = this.#database
      .query<{ key: number; distance: number }, [Uint8Array, string]>(
        `SELECT v.passage AS key, vec_distance_cosine(v.embedding, ?1) AS distance
         FROM json_each(?2) AS wanted JOIN ${vectorTable(space)} AS v ON v.passage = wanted.value`,
      )
      .all(bytesOf(vector), JSON.stringify(passages));
    return new Map(rows.map(({ key, distance }) => [key, 1 - distance]));
  }

  async nearestOf(
    question: SpaceVector,
    _: readonly number[],
    limit: number,
    passages: readonly number[],
  ): Promise<Scored[]> {
    return [...(await this.similarities(question, passages))]
      .map(([key, score]) => ({ key, score }))
      .sort(byScore)
      .slice(0, limit);
  }

  /** If passages that are not shown are among the nearest, more are requested. */
  async nearest(
    question: SpaceVector,
    scopes: readonly number[],
    limit: number,
    isShown: (passage: number) => boolean,
  ): Promise<Scored[]> {
    for (let asked = limit; ; asked = Math.min(asked * 4, VECTOR_LIMIT)) {
      const near = this.#nearest(question, scopes, asked);
      const shown = near.filter(({ key }) => isShown(key));
      const isAll = near.length < asked || asked === VECTOR_LIMIT;
      if (isAll || shown.length >= limit) return shown.slice(0, limit);
    }
  }

  /** Searches one partition for each scope, so nothing outside is read. */
  #nearest({ space, vector }: SpaceVector, scopes: readonly number[], limit: number): Scored[] {
    const best = new TopK(limit);
    for (let from = 0; from < scopes.length; from += SCOPES_AT_ONCE) {
      const rows = this.#database
        .query<{ key: number; distance: number }, [Uint8Array, number, string]>(
          `SELECT passage AS key, distance FROM ${vectorTable(space)}
           WHERE embedding MATCH ?1 AND k = ?2 AND scope IN (SELECT value FROM json_each(?3))`,
        )
        .all(
          bytesOf(vector),
          Math.min(limit, VECTOR_LIMIT),
          JSON.stringify(scopes.slice(from, from + SCOPES_AT_ONCE)),
        );
      for (const { key, distance } of rows) best.offer(key, 1 - distance);
    }
    return best.sorted();
  }

  async updatedAt(passages: readonly number[]): Promise<Map<number, number>> {
    const rows = this.#database
      .query<{ key: number; updatedAt: number }, [string]>(
        `SELECT wanted.value AS key, d.updated_at AS updatedAt FROM json_each(?1) AS wanted
         JOIN vault_documents AS d ON d.key = wanted.value / ${PER_DOCUMENT}`,
      )
      .all(JSON.stringify(passages));
    return new Map(rows.map(({ key, updatedAt }) => [key, updatedAt]));
  }

  async passages(passages: readonly number[]): Promise<Map<number, StoredPassage>> {
    const rows = this.#database
      .query<Omit<StoredPassage, "text"> & { key: number }, [string]>(
        `SELECT c.key, c.id AS chunkId, c."start", c."end", d.id AS documentId, d.title, d.source_uri AS sourceUri,
           d.metadata, s.path AS scope
         FROM json_each(?1) AS wanted
         JOIN vault_chunks AS c ON c.key = wanted.value
         JOIN vault_documents AS d ON d.key = c.key / ${PER_DOCUMENT}
         JOIN vault_scopes AS s ON s.id = d.scope_id`,
      )
      .all(JSON.stringify(passages));
    return new Map(
      rows.map(({ key, ...row }) => [key, { ...row, text: this.#text(documentOf(key), row.start, row.end) }]),
    );
  }

  /** A range of a document's text. */
  #text(document: number, start: number, end: number): string {
    const pages = this.#database
      .query<TextPage, [number, number]>(
        'SELECT "start", text FROM vault_pages WHERE key BETWEEN ?1 AND ?2 ORDER BY key',
      )
      .all(...pageKeys(document, start, end));
    return cutPages(pages, start, end);
  }
}

function isOfStore(error: unknown): error is Error {
  return (
    error instanceof Error && "code" in error && typeof error.code === "string" && STORE.test(error.code)
  );
}

function bytesOf(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}

import { Database } from "bun:sqlite";
import { type Boundary, ROOT_SCOPE, rangeBelow } from "../access/memory-scope.ts";
import type { CacheReport, CacheUpdate, SharedSegment } from "./messages.ts";
import { PER_DOCUMENT } from "./rows/keys.ts";
import { cutPages, pageKeys, type TextPage } from "./rows/pages.ts";
import { VEC_ENTRY, vectorTable } from "./rows/vector-table.ts";
import { type Scored, TopK } from "./search/top-k.ts";
import { Segment } from "./segments/segment.ts";

/** Small, because data that is read often is kept in the segments. */
const PAGE_CACHE_KB = 4_096;
/** vec0's limit for `k`. */
const VECTOR_LIMIT = 4_096;
/** Scopes per query. Each returns `k` rows. */
const SCOPES_AT_ONCE = 64;

interface SegmentRow {
  readonly id: number;
  readonly scope_id: number;
}

/** The live part of the index inside a boundary. */
export interface BoundarySegments {
  /** Keys of the scopes that have documents. */
  readonly scopes: readonly number[];
  readonly segments: readonly Segment[];
}

export interface PassageRow {
  readonly key: number;
  readonly chunk_id: string;
  readonly start: number;
  readonly end: number;
  readonly document_id: string;
  readonly title: string;
  readonly source_uri: string | null;
  readonly metadata: string;
  readonly scope: string;
  readonly updated_at: number;
}

/**
 * Reads the vault's index through its own connection, which sees only committed data and blocks nobody. Used from a
 * single thread. Everything is synchronous, as `bun:sqlite` is.
 */
export class IndexReader {
  readonly #database: Database;
  readonly #segments = new Map<number, Segment>();
  #segmentBytes = 0;
  #used: number[] = [];
  #read: SharedSegment[] = [];

  /** Caches every segment that it reads until `changeCache` drops it. */
  constructor(path: string, extension: string | null) {
    this.#database = new Database(path, { readonly: true, strict: true });
    if (extension !== null) this.#database.loadExtension(extension, VEC_ENTRY);
    this.#database.exec("PRAGMA query_only = ON");
    this.#database.exec("PRAGMA temp_store = MEMORY");
    this.#database.exec(`PRAGMA cache_size = -${PAGE_CACHE_KB}`);
    this.#database.exec("PRAGMA busy_timeout = 1000");
  }

  /** Memory used by cached segments, in bytes. */
  get segmentBytes(): number {
    return this.#segmentBytes;
  }

  /** Runs `work` on a single snapshot of the store, however many queries it makes. */
  snapshot<Result>(work: () => Result): Result {
    this.#database.exec("BEGIN");
    try {
      return work();
    } finally {
      this.#database.exec("COMMIT");
    }
  }

  reach(workspaceId: number, boundary: Boundary): BoundarySegments {
    const scopes = new Set<number>();
    const segments: Segment[] = [];
    for (const path of boundary) {
      for (const row of this.#segmentRows(workspaceId, path)) {
        scopes.add(row.scope_id);
        segments.push(this.segment(row.id));
      }
    }
    return { scopes: [...scopes], segments };
  }

  #segmentRows(workspaceId: number, path: string): SegmentRow[] {
    const select = `SELECT g.id, g.scope_id FROM vault_scopes AS s
      CROSS JOIN vault_segments AS g ON g.scope_id = s.id AND g.live = 1 WHERE s.workspace_id = ?1`;
    if (path === ROOT_SCOPE) return this.#database.query<SegmentRow, [number]>(select).all(workspaceId);
    // Two indexed look-ups: with OR, SQLite would scan all scopes.
    return this.#database
      .query<SegmentRow, [number, string, string, string]>(
        `${select} AND s.path = ?2 UNION ALL ${select} AND s.path > ?3 AND s.path < ?4`,
      )
      .all(workspaceId, path, ...rangeBelow(path));
  }

  /** The live segments of a scope, with their keys. */
  segmentsOf(scopeId: number): { readonly id: number; readonly segment: Segment }[] {
    return this.#database
      .query<{ id: number }, [number]>(
        "SELECT id FROM vault_segments WHERE scope_id = ?1 AND live = 1 ORDER BY id",
      )
      .all(scopeId)
      .map(({ id }) => ({ id, segment: this.segment(id) }));
  }

  /** Taken from the cache if possible: segments never change, and their keys are never reused. */
  segment(id: number): Segment {
    this.#used.push(id);
    return this.#segments.get(id) ?? this.#readSegment(id);
  }

  #readSegment(id: number): Segment {
    const row = this.#database
      .query<{ data: Uint8Array }, [number]>("SELECT data FROM vault_segments WHERE id = ?1")
      .get(id);
    if (!row) throw new Error("an index segment is gone");
    const buffer = new SharedArrayBuffer(row.data.byteLength);
    new Uint8Array(buffer).set(row.data);
    this.#read.push({ id, buffer });
    return this.#cache(id, buffer);
  }

  #cache(id: number, buffer: SharedArrayBuffer): Segment {
    const segment = new Segment(new Uint8Array(buffer));
    this.#segmentBytes += segment.byteLength - (this.#segments.get(id)?.byteLength ?? 0);
    this.#segments.set(id, segment);
    return segment;
  }

  /** What happened to the cache since the last report. */
  cacheReport(): CacheReport {
    const report = { used: Float64Array.from(this.#used), read: this.#read };
    this.#used = [];
    this.#read = [];
    return report;
  }

  changeCache({ dropped, added }: CacheUpdate): void {
    for (const id of dropped) {
      this.#segmentBytes -= this.#segments.get(id)?.byteLength ?? 0;
      this.#segments.delete(id);
    }
    for (const { id, buffer } of added) this.#cache(id, buffer);
  }

  /** Keys of the documents in these scopes that have all of these hashed values. */
  documentsWith(scopes: readonly number[], hashes: readonly Uint8Array[]): ReadonlySet<number> {
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

  /** Cosine similarities of those passages that have a vector in the space. */
  similarities(space: number, vector: Float32Array, keys: readonly number[]): Map<number, number> {
    const rows = this.#database
      .query<{ key: number; distance: number }, [Uint8Array, string]>(
        `SELECT v.passage AS key, vec_distance_cosine(v.embedding, ?1) AS distance
         FROM json_each(?2) AS wanted JOIN ${vectorTable(space)} AS v ON v.passage = wanted.value`,
      )
      .all(bytesOf(vector), JSON.stringify(keys));
    return new Map(rows.map(({ key, distance }) => [key, 1 - distance]));
  }

  /** The nearest passages within these scopes. Searches one partition per scope, so nothing outside is read. */
  nearest(space: number, vector: Float32Array, scopes: readonly number[], limit: number): Scored[] {
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

  passages(keys: readonly number[]): Map<number, PassageRow> {
    const rows = this.#database
      .query<PassageRow, [string]>(
        `SELECT c.key, c.id AS chunk_id, c."start", c."end", d.id AS document_id, d.title, d.source_uri, d.metadata,
           s.path AS scope, d.updated_at
         FROM json_each(?1) AS wanted
         JOIN vault_chunks AS c ON c.key = wanted.value
         JOIN vault_documents AS d ON d.key = c.key / ${PER_DOCUMENT}
         JOIN vault_scopes AS s ON s.id = d.scope_id`,
      )
      .all(JSON.stringify(keys));
    return new Map(rows.map((row) => [row.key, row]));
  }

  /** A range of a document's text. */
  text(document: number, start: number, end: number): string {
    const pages = this.#database
      .query<TextPage, [number, number]>(
        'SELECT "start", text FROM vault_pages WHERE key BETWEEN ?1 AND ?2 ORDER BY key',
      )
      .all(...pageKeys(document, start, end));
    return cutPages(pages, start, end);
  }

  close(): void {
    this.#database.close();
  }
}

function bytesOf(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}

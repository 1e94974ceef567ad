import { ROOT_SCOPE, rangeBelow } from "../access/memory-scope.ts";
import { type Sql, StoreUnavailable } from "../store/db.ts";
import { type SnapshotOptions, Snapshots } from "../store/postgres/snapshots.ts";
import {
  type IndexState,
  type IndexStore,
  IndexUnreadable,
  type SegmentPlace,
  type SegmentRange,
  type StoredPassage,
} from "./index-store.ts";
import { documentOf, PER_DOCUMENT } from "./rows/keys.ts";
import { cutPages, pageKeys, type TextPage } from "./rows/pages.ts";
import type { Scored } from "./search/top-k.ts";

type Reader = Pick<Sql, "all">;

/** Segments read by one statement. Most have some ten kilobytes, the largest some megabytes. */
const SEGMENTS_AT_ONCE = 8;

const LIVE_OF_WORKSPACE = `SELECT g.id, g.scope_id AS "scopeId" FROM vault_scopes AS s
  JOIN vault_segments AS g ON g.scope_id = s.id AND g.live = 1 WHERE s.workspace_id = $1`;

/** The index in PostgreSQL. It has no vectors of models (`vectorsOf`), so nothing asks for any. */
export class PostgresIndex implements IndexStore {
  readonly #snapshots: Snapshots;

  constructor(options: SnapshotOptions) {
    this.#snapshots = new Snapshots(options);
  }

  async read<Result>(work: (state: IndexState) => Promise<Result>): Promise<Result> {
    try {
      return await this.#snapshots.read((sql) => work(new PostgresState(sql)));
    } catch (error) {
      throw error instanceof StoreUnavailable ? new IndexUnreadable(error) : error;
    }
  }

  close(): Promise<void> {
    return this.#snapshots.close();
  }
}

class PostgresState implements IndexState {
  readonly #sql: Reader;

  constructor(sql: Reader) {
    this.#sql = sql;
  }

  async segments(range: SegmentRange): Promise<SegmentPlace[]> {
    if ("scopeId" in range) {
      return this.#sql.all(
        'SELECT id, scope_id AS "scopeId" FROM vault_segments WHERE scope_id = $1 AND live = 1 ORDER BY id',
        [range.scopeId],
      );
    }
    const { workspaceId, boundary } = range;
    const found = await Promise.all(
      boundary.map((path) =>
        path === ROOT_SCOPE
          ? this.#sql.all<SegmentPlace>(`${LIVE_OF_WORKSPACE} ORDER BY s.path, g.id`, [workspaceId])
          : this.#sql.all<SegmentPlace>(
              `${LIVE_OF_WORKSPACE} AND (s.path = $2 OR (s.path > $3 AND s.path < $4)) ORDER BY s.path, g.id`,
              [workspaceId, path, ...rangeBelow(path)],
            ),
      ),
    );
    return found.flat();
  }

  async readSegments(ids: readonly number[], take: (id: number, bytes: Uint8Array) => void): Promise<void> {
    for (let from = 0; from < ids.length; from += SEGMENTS_AT_ONCE) {
      const wanted = ids.slice(from, from + SEGMENTS_AT_ONCE);
      const rows = await this.#sql.all<{ id: number; data: Uint8Array }>(
        "SELECT id, data FROM vault_segments WHERE id = ANY ($1::bigint[])",
        [arrayOf(wanted)],
      );
      if (rows.length < wanted.length) throw new Error("an index segment is gone");
      for (const { id, data } of rows) take(id, data);
    }
  }

  async documentsWith(
    scopes: readonly number[],
    hashes: readonly Uint8Array[],
  ): Promise<ReadonlySet<number>> {
    let found: Set<number> | null = null;
    for (const hash of hashes) {
      const rows = await this.#sql.all<{ document_key: number }>(
        "SELECT document_key FROM vault_metadata WHERE hash = $1 AND scope_id = ANY ($2::bigint[])",
        [hash, arrayOf(scopes)],
      );
      const keys = new Set(rows.map((row) => row.document_key));
      found = found === null ? keys : found.intersection(keys);
    }
    return found ?? new Set();
  }

  similarities(): Promise<Map<number, number>> {
    throw withoutVectors();
  }

  nearest(): Promise<Scored[]> {
    throw withoutVectors();
  }

  async updatedAt(passages: readonly number[]): Promise<Map<number, number>> {
    const rows = await this.#sql.all<{ key: number; updatedAt: number }>(
      `SELECT wanted.key, d.updated_at AS "updatedAt" FROM unnest($1::bigint[]) AS wanted (key)
       JOIN vault_documents AS d ON d.key = wanted.key / ${PER_DOCUMENT}`,
      [arrayOf(passages)],
    );
    return new Map(rows.map(({ key, updatedAt }) => [key, updatedAt]));
  }

  async passages(passages: readonly number[]): Promise<Map<number, StoredPassage>> {
    const rows = await this.#sql.all<Omit<StoredPassage, "text"> & { key: number }>(
      `SELECT c.key, c.id AS "chunkId", c."start", c."end", d.id AS "documentId", d.title, d.source_uri AS "sourceUri",
         d.metadata, s.path AS scope
       FROM vault_chunks AS c
       JOIN vault_documents AS d ON d.key = c.key / ${PER_DOCUMENT}
       JOIN vault_scopes AS s ON s.id = d.scope_id
       WHERE c.key = ANY ($1::bigint[])`,
      [arrayOf(passages)],
    );
    const texts = await Promise.all(
      rows.map(({ key, start, end }) => this.#text(documentOf(key), start, end)),
    );
    return new Map(rows.map(({ key, ...row }, at) => [key, { ...row, text: texts[at] ?? "" }]));
  }

  /** A range of a document's text. */
  async #text(document: number, start: number, end: number): Promise<string> {
    const pages = await this.#sql.all<TextPage>(
      'SELECT "start", text FROM vault_pages WHERE key BETWEEN $1 AND $2 ORDER BY key',
      pageKeys(document, start, end),
    );
    return cutPages(pages, start, end);
  }
}

/** As PostgreSQL writes an array. */
function arrayOf(numbers: readonly number[]): string {
  return `{${numbers.join(",")}}`;
}

function withoutVectors(): Error {
  return new Error("PostgreSQL has no vectors");
}

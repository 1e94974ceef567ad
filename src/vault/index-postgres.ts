import { ROOT_SCOPE, rangeBelow } from "../access/memory-scope.ts";
import { type Sql, StoreUnavailable } from "../store/db.ts";
import { type SnapshotOptions, Snapshots } from "../store/postgres/snapshots.ts";
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
import { PAGE_LENGTH } from "./rows/pages.ts";
import { nearCandidates } from "./search/near-candidates.ts";
import { byScore, type Scored } from "./search/top-k.ts";
import { exactSimilarity, roundable } from "./segments/cosine.ts";
import type { SegmentCache } from "./segments/segment-cache.ts";

type Reader = Pick<Sql, "all">;

/** Segments read by one statement. Most have some ten kilobytes, the largest some megabytes. */
const SEGMENTS_AT_ONCE = 8;
/** Exact vectors read by one statement: some megabytes. */
const VECTORS_AT_ONCE = 512;
/** With more passages than this, their rounded copies are compared first. */
const COMPARED_EXACTLY = 512;

const LIVE_OF_WORKSPACE = `SELECT g.id, g.scope_id AS "scopeId" FROM vault_scopes AS s
  JOIN vault_segments AS g ON g.scope_id = s.id AND g.live = 1 WHERE s.workspace_id = $1`;

/** The page that contains a character of a document's text, which may begin one before: see `pageKeys`. */
const page = (character: string) => `d.key * ${PER_DOCUMENT} + ${character} / ${PAGE_LENGTH}`;

/** The index in PostgreSQL. Segments and copies of vectors are kept in the thread's cache. */
export class PostgresIndex implements IndexStore {
  readonly #snapshots: Snapshots;
  readonly #cache: SegmentCache;

  constructor(options: SnapshotOptions, cache: SegmentCache) {
    this.#snapshots = new Snapshots(options);
    this.#cache = cache;
  }

  async read<Result>(work: (state: IndexState) => Promise<Result>): Promise<Result> {
    try {
      return await this.#snapshots.read((sql) => work(new PostgresState(sql, this.#cache)));
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
  readonly #cache: SegmentCache;

  constructor(sql: Reader, cache: SegmentCache) {
    this.#sql = sql;
    this.#cache = cache;
  }

  async segments(range: SegmentRange): Promise<SegmentPlace[]> {
    if ("scopeId" in range) return this.#segmentsOf(range.scopeId, range.space);
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

  #segmentsOf(scopeId: number, space: number | null): Promise<SegmentPlace[]> {
    if (space === null) {
      return this.#sql.all(
        'SELECT id, scope_id AS "scopeId" FROM vault_segments WHERE scope_id = $1 AND live = 1 ORDER BY id',
        [scopeId],
      );
    }
    return this.#copies(space, [scopeId]);
  }

  #copies(space: number, scopes: readonly number[]): Promise<SegmentPlace[]> {
    return this.#sql.all(
      `SELECT id, scope_id AS "scopeId" FROM vault_vector_segments
       WHERE space_id = $1 AND scope_id = ANY ($2::bigint[]) ORDER BY scope_id, id`,
      [space, arrayOf(scopes)],
    );
  }

  /** Of either kind, as their keys differ. */
  async readSegments(ids: readonly number[], take: (id: number, bytes: Uint8Array) => void): Promise<void> {
    for (let from = 0; from < ids.length; from += SEGMENTS_AT_ONCE) {
      const wanted = ids.slice(from, from + SEGMENTS_AT_ONCE);
      const rows = await this.#sql.all<{ id: number; data: Uint8Array }>(
        `SELECT id, data FROM vault_segments WHERE id = ANY ($1::bigint[])
         UNION ALL SELECT id, data FROM vault_vector_segments WHERE id = ANY ($1::bigint[])`,
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
    const found = await Promise.all(
      hashes.map((hash) =>
        this.#sql.all<{ document_key: number }>(
          "SELECT document_key FROM vault_metadata WHERE hash = $1 AND scope_id = ANY ($2::bigint[])",
          [hash, arrayOf(scopes)],
        ),
      ),
    );
    const [first, ...others] = found.map((rows) => new Set(rows.map((row) => row.document_key)));
    return others.reduce((both, keys) => both.intersection(keys), first ?? new Set<number>());
  }

  async similarities(
    { space, vector }: SpaceVector,
    passages: readonly number[],
  ): Promise<Map<number, number>> {
    const similar = new Map<number, number>();
    for (let from = 0; from < passages.length; from += VECTORS_AT_ONCE) {
      const rows = await this.#sql.all<{ passage: number; embedding: Uint8Array }>(
        "SELECT passage, embedding FROM vault_vectors WHERE space_id = $1 AND passage = ANY ($2::bigint[])",
        [space, arrayOf(passages.slice(from, from + VECTORS_AT_ONCE))],
      );
      for (const { passage, embedding } of rows)
        similar.set(passage, exactSimilarity(numbersOf(embedding), vector));
    }
    return similar;
  }

  async nearest(
    question: SpaceVector,
    scopes: readonly number[],
    limit: number,
    isShown: (passage: number) => boolean,
  ): Promise<Scored[]> {
    const copies = await this.#copies(question.space, scopes);
    const segments = await this.#cache.load(
      this,
      copies.map(({ id }) => id),
    );
    return this.#ranked(
      question,
      limit,
      nearCandidates(segments, roundable(question.vector), limit, isShown),
    );
  }

  async nearestOf(
    question: SpaceVector,
    scopes: readonly number[],
    limit: number,
    passages: readonly number[],
  ): Promise<Scored[]> {
    if (passages.length <= COMPARED_EXACTLY) return this.#ranked(question, limit, passages);
    const wanted = new Set(passages);
    return this.nearest(question, scopes, limit, (key) => wanted.has(key));
  }

  async #ranked(question: SpaceVector, limit: number, passages: readonly number[]): Promise<Scored[]> {
    return [...(await this.similarities(question, passages))]
      .map(([key, score]) => ({ key, score }))
      .sort(byScore)
      .slice(0, limit);
  }

  async updatedAt(passages: readonly number[]): Promise<Map<number, number>> {
    const documents = new Set(passages.map(documentOf));
    const rows = await this.#sql.all<{ key: number; updatedAt: number }>(
      'SELECT key, updated_at AS "updatedAt" FROM vault_documents WHERE key = ANY ($1::bigint[])',
      [arrayOf([...documents])],
    );
    const times = new Map(rows.map(({ key, updatedAt }) => [key, updatedAt]));
    return new Map(
      passages.flatMap((key) => {
        const time = times.get(documentOf(key));
        return time === undefined ? [] : [[key, time]];
      }),
    );
  }

  async passages(passages: readonly number[]): Promise<Map<number, StoredPassage>> {
    const rows = await this.#sql.all<StoredPassage & { key: number; first: number }>(
      `SELECT c.key, c.id AS "chunkId", c."start", c."end", d.id AS "documentId", d.title, d.source_uri AS "sourceUri",
         d.metadata, s.path AS scope, p.first, p.text
       FROM vault_chunks AS c
       JOIN vault_documents AS d ON d.key = c.key / ${PER_DOCUMENT}
       JOIN vault_scopes AS s ON s.id = d.scope_id,
       LATERAL (
         SELECT coalesce(min("start"), 0) AS first, coalesce(string_agg(text, '' ORDER BY key), '') AS text
         FROM vault_pages WHERE key BETWEEN ${page('c."start"')} AND ${page('c."end"')} + 1
       ) AS p
       WHERE c.key = ANY ($1::bigint[])`,
      [arrayOf(passages)],
    );
    return new Map(
      rows.map(({ key, first, ...row }) => [
        key,
        { ...row, text: row.text.slice(row.start - first, row.end - first) },
      ]),
    );
  }
}

/** As PostgreSQL writes an array. */
function arrayOf(numbers: readonly number[]): string {
  return `{${numbers.join(",")}}`;
}

function numbersOf(bytes: Uint8Array): Float32Array {
  return bytes.byteOffset % 4 === 0
    ? new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4)
    : new Float32Array(bytes.slice().buffer);
}

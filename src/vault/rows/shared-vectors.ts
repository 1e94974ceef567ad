/**
 * The vectors of the spaces in PostgreSQL: exact ones as rows, and of a model's also rounded copies in segments without
 * words, which the workers cache and scan. Everything that the main thread asks of them is here; the workers read them in
 * `index-postgres.ts`.
 */
import type { SqlValue, Tx } from "../../store/db.ts";
import { Raced } from "../raced.ts";
import { roundable } from "../segments/cosine.ts";
import { encodeSegment } from "../segments/segment-writer.ts";
import { LEXICAL_SPACE } from "../terms/lexical.ts";
import { PER_DOCUMENT } from "./keys.ts";
import type { PassageVector, VectorSegments, VectorStore, VectorsOf } from "./vector-store.ts";

/** Vectors of an obsolete space removed in one transaction. */
const DROPPED_AT_ONCE = 500;

const INSERT = `INSERT INTO vault_vectors (space_id, passage, embedding)
  SELECT $1, passage, substring($3::bytea FROM ((number - 1) * $4)::int + 1 FOR $4::int)
  FROM unnest($2::bigint[]) WITH ORDINALITY AS wanted (passage, number)`;

const segments: VectorSegments = {
  isFor: ({ name }) => name !== LEXICAL_SPACE,
  async swap(tx, space, scopeId, { removed, added }) {
    const gone = await tx.run("DELETE FROM vault_vector_segments WHERE id = ANY ($1::bigint[])", [
      arrayOf(removed),
    ]);
    if (gone < removed.length) throw new Raced("segments of vectors have changed");
    for (const { passages, bytes } of added) insertSegment(tx, space, scopeId, passages, bytes);
  },
  unmerged: (sql) =>
    sql.all(
      `SELECT s.id, s.workspace_id AS "workspaceId" FROM vault_scopes AS s
       WHERE s.id IN (SELECT scope_id FROM vault_vector_segments GROUP BY space_id, scope_id HAVING count(*) > 1)`,
    ),
};

export const sharedVectors: VectorStore = {
  isAvailable: true,
  makeRoom() {},
  async drop(tx, space) {
    const vectors = await tx.run(
      `DELETE FROM vault_vectors WHERE space_id = $1 AND passage IN
       (SELECT passage FROM vault_vectors WHERE space_id = $1 ORDER BY passage LIMIT $2)`,
      [space.id, DROPPED_AT_ONCE],
    );
    const copies = await tx.run(
      `DELETE FROM vault_vector_segments WHERE id IN
       (SELECT id FROM vault_vector_segments WHERE space_id = $1 ORDER BY scope_id, id LIMIT $2)`,
      [space.id, DROPPED_AT_ONCE],
    );
    return vectors + copies > 0;
  },
  insert(tx, space, scopeId, vectors) {
    if (vectors.length === 0) return;
    tx.write(INSERT, rowsOf(space, vectors));
    addSegment(tx, space, scopeId, vectors);
  },
  async fill(tx, space, scopeId, vectors) {
    if (vectors.length === 0) return;
    const added = await tx.all<{ passage: number }>(
      `${INSERT} ON CONFLICT (space_id, passage) DO NOTHING RETURNING passage`,
      rowsOf(space, vectors),
    );
    const keys = new Set(added.map(({ passage }) => passage));
    addSegment(
      tx,
      space,
      scopeId,
      vectors.filter(({ key }) => keys.has(key)),
    );
  },
  async has(sql, space, key) {
    const params = [space.id, key];
    const row = await sql.get("SELECT 1 FROM vault_vectors WHERE space_id = $1 AND passage = $2", params);
    return row !== undefined;
  },
  remove(tx, space, first, last) {
    tx.write("DELETE FROM vault_vectors WHERE space_id = $1 AND passage BETWEEN $2 AND $3", [
      space.id,
      first,
      last,
    ]);
  },
  async ofEqual(sql, space, { workspaceId, scope }, hashes) {
    const rows = await sql.all<{ number: number; embedding: Uint8Array }>(
      `SELECT wanted.number, found.embedding
       FROM unnest($4::text[]) WITH ORDINALITY AS wanted (hash, number), LATERAL (
         SELECT v.embedding FROM vault_chunks AS c
         JOIN vault_documents AS d ON d.key = c.key / ${PER_DOCUMENT} AND d.state = 'live'
         JOIN vault_scopes AS s ON s.id = d.scope_id AND s.workspace_id = $1 AND s.path = $3
         JOIN vault_vectors AS v ON v.space_id = $2 AND v.passage = c.key
         WHERE c.hash = decode(wanted.hash, 'hex') LIMIT 1) AS found`,
      [workspaceId, space.id, scope, `{${hashes.map((hash) => hash.toHex()).join(",")}}`],
    );
    const found = new Map(rows.map(({ number, embedding }) => [number, embedding]));
    return hashes.map((_, at) => {
      const bytes = found.get(at + 1);
      return bytes && new Float32Array(bytes.slice().buffer);
    });
  },
  segments,
  blocks: null,
};

/** The values for `INSERT`. All vectors have the same length. */
function rowsOf(space: VectorsOf, vectors: readonly PassageVector[]): SqlValue[] {
  const length = vectors[0]?.vector.byteLength ?? 0;
  const bytes = new Uint8Array(length * vectors.length);
  for (const [at, { vector }] of vectors.entries()) {
    bytes.set(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength), at * length);
  }
  return [space.id, arrayOf(vectors.map(({ key }) => key)), bytes, length];
}

function addSegment(tx: Tx, space: VectorsOf, scopeId: number, vectors: readonly PassageVector[]): void {
  if (vectors.length === 0 || !segments.isFor(space)) return;
  const passages = vectors
    .toSorted((left, right) => left.key - right.key)
    .map(({ key, vector }) => ({ key, length: 0, terms: new Map(), vector: roundable(vector) }));
  insertSegment(tx, space, scopeId, passages.length, encodeSegment(passages));
}

function insertSegment(tx: Tx, space: VectorsOf, scopeId: number, passages: number, bytes: Uint8Array): void {
  tx.write("INSERT INTO vault_vector_segments (space_id, scope_id, chunks, data) VALUES ($1, $2, $3, $4)", [
    space.id,
    scopeId,
    passages,
    bytes,
  ]);
}

/** As PostgreSQL writes an array. */
function arrayOf(numbers: readonly number[]): string {
  return `{${numbers.join(",")}}`;
}

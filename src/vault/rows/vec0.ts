/**
 * The vectors of the spaces in SQLite: a table of sqlite-vec (vec0) for each space. Everything that the main thread
 * asks of such a table is here; the workers read it in `index-sqlite.ts`.
 */
import type { Sql, SqlValue, Tx } from "../../store/db.ts";
import { PER_DOCUMENT } from "./keys.ts";
import type { PassageLocation, VectorStore, VectorsOf } from "./vector-store.ts";
import { vectorTable } from "./vector-table.ts";

/**
 * Vectors in a vec0 block. Larger blocks would reserve megabytes for every small scope and slow down single reads.
 */
export const BLOCK = 32;
/** Vectors of an obsolete space removed in one transaction. */
const DROPPED_AT_ONCE = 64;

/** The vectors in SQLite. `isAvailable`: whether sqlite-vec is loaded. */
export function vec0Vectors(isAvailable: boolean): VectorStore {
  return {
    isAvailable,
    makeRoom: createVectors,
    drop: dropVectors,
    insert(tx, space, scopeId, vectors) {
      for (const { key, vector } of vectors) insertVector(tx, space, scopeId, key, vector);
    },
    async fill(tx, space, scopeId, vectors) {
      this.insert(tx, space, scopeId, vectors);
    },
    has: hasVector,
    remove(tx, space, first, last) {
      for (let key = first; key <= last; key++) deleteVector(tx, space, key);
    },
    async ofEqual(sql, space, place, hashes) {
      const found: (Float32Array | undefined)[] = [];
      for (const hash of hashes) found.push(await vectorOfEqual(sql, space, place, hash));
      return found;
    },
    segments: null,
    blocks: { size: BLOCK, sparse: sparsePassages, move: moveVectors },
  };
}

/** Creates the table if it is not there. */
function createVectors(tx: Tx, space: VectorsOf, dimensions: number): void {
  const table = vectorTable(space.id);
  tx.write(
    `CREATE VIRTUAL TABLE IF NOT EXISTS ${table} USING vec0 (passage INTEGER PRIMARY KEY,
     scope INTEGER PARTITION KEY, embedding FLOAT[${dimensions}] DISTANCE_METRIC=cosine, chunk_size=${BLOCK})`,
  );
  // Without it, each insert reads the blocks of all partitions.
  tx.write(`CREATE INDEX IF NOT EXISTS ${table}_scopes ON ${table}_chunks (partition00)`);
}

/** Removes a slice of the space's vectors, or the table once it is empty. @returns whether there may be more */
async function dropVectors(tx: Tx, space: VectorsOf): Promise<boolean> {
  const table = vectorTable(space.id);
  const rows = await tx.all<{ passage: number }>(
    `SELECT rowid AS passage FROM ${table}_rowids ORDER BY rowid LIMIT $1`,
    [DROPPED_AT_ONCE],
  );
  for (const { passage } of rows) deleteVector(tx, space, passage);
  if (rows.length > 0) return true;
  tx.write(`DROP TABLE ${table}`);
  return false;
}

export function insertVector(
  tx: Tx,
  space: VectorsOf,
  scopeId: number,
  key: number,
  vector: Float32Array,
): void {
  const bytes: SqlValue = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  tx.write(`INSERT INTO ${vectorTable(space.id)} (passage, scope, embedding) VALUES ($1, $2, $3)`, [
    key,
    scopeId,
    bytes,
  ]);
}

async function hasVector(sql: Sql, space: VectorsOf, key: number): Promise<boolean> {
  const row = await sql.get(`SELECT passage FROM ${vectorTable(space.id)} WHERE passage = $1`, [key]);
  return row !== undefined;
}

function deleteVector(tx: Tx, space: VectorsOf, key: number): void {
  tx.write(`DELETE FROM ${vectorTable(space.id)} WHERE passage = $1`, [key]);
}

/** The vector of any passage in this scope whose title and text have this hash. */
async function vectorOfEqual(
  sql: Pick<Sql, "get">,
  space: VectorsOf,
  { workspaceId, scope }: PassageLocation,
  hash: Uint8Array,
): Promise<Float32Array | undefined> {
  const row = await sql.get<{ embedding: Uint8Array }>(
    `SELECT v.embedding FROM vault_chunks AS c
     JOIN vault_documents AS d ON d.key = c.key / ${PER_DOCUMENT} AND d.state = 'live'
     JOIN vault_scopes AS s ON s.id = d.scope_id AND s.workspace_id = $2 AND s.path = $3
     JOIN ${vectorTable(space.id)} AS v ON v.passage = c.key WHERE c.hash = $1 LIMIT 1`,
    [hash, workspaceId, scope],
  );
  return row && new Float32Array(row.embedding.slice().buffer);
}

/**
 * Passages whose vectors are in blocks at most half full, if more than half of the partition's places are free;
 * otherwise none. The newest block, which receives new vectors, is excluded.
 */
export async function sparsePassages(
  sql: Sql,
  space: VectorsOf,
  scopeId: number,
): Promise<readonly number[]> {
  const rows = await sql.all<{ validity: Uint8Array; rowids: Uint8Array }>(
    `SELECT validity, rowids FROM ${vectorTable(space.id)}_chunks WHERE partition00 = $1 ORDER BY chunk_id`,
    [scopeId],
  );
  const blocks = rows.map(passagesOf);
  const held = blocks.reduce((sum, block) => sum + block.length, 0);
  if (blocks.length * BLOCK <= 2 * held + BLOCK) return [];
  return blocks.slice(0, -1).flatMap((block) => (block.length * 2 <= BLOCK ? block : []));
}

/** A block's passages: one bit for each place in use, lowest first, and a 64-bit passage key for each place. */
function passagesOf({ validity, rowids }: { validity: Uint8Array; rowids: Uint8Array }): number[] {
  const keys = new DataView(rowids.buffer, rowids.byteOffset, rowids.byteLength);
  const held: number[] = [];
  for (let place = 0; place < validity.length * 8; place++) {
    if (((validity[place >> 3] ?? 0) >> (place & 7)) & 1)
      held.push(Number(keys.getBigInt64(place * 8, true)));
  }
  return held;
}

/** Rewrites vectors into the partition's newest block. Deleted ones stay deleted. */
export async function moveVectors(
  tx: Tx,
  space: VectorsOf,
  scopeId: number,
  keys: readonly number[],
): Promise<void> {
  for (const key of keys) {
    const row = await tx.get<{ embedding: Uint8Array }>(
      `SELECT embedding FROM ${vectorTable(space.id)} WHERE passage = $1`,
      [key],
    );
    if (!row) continue;
    deleteVector(tx, space, key);
    insertVector(tx, space, scopeId, key, new Float32Array(row.embedding.slice().buffer));
  }
}

import { SCOPES } from "../passages.ts";
import { importIfThere, type Peer } from "./peer.ts";
import { DIMENSIONS } from "./vectors.ts";

interface Row {
  readonly row: number;
  readonly scope: number;
  readonly vector: readonly number[];
}

/** The part of `@lancedb/lancedb` that is used here. */
interface LanceDb {
  connect(folder: string): Promise<{ createTable(name: string, rows: readonly Row[]): Promise<Table> }>;
}
interface Table {
  add(rows: readonly Row[]): Promise<unknown>;
  createIndex(column: string): Promise<unknown>;
  optimize(): Promise<unknown>;
  vectorSearch(vector: Float32Array): VectorQuery;
}
interface VectorQuery {
  distanceType(type: "cosine"): VectorQuery;
  where(predicate: string): VectorQuery;
  select(columns: readonly string[]): VectorQuery;
  limit(count: number): VectorQuery;
  toArray(): Promise<readonly { readonly row: number }[]>;
}

/** LanceDB with an index on the scope and none on the vectors, so it is exact, like Gatehouse. */
export async function openLanceDb(folder: string): Promise<Peer> {
  const { connect } = (await importIfThere("@lancedb/lancedb")) as LanceDb;
  const connection = await connect(folder);
  let table: Table | null = null;
  const opened = (): Table => {
    if (table === null) throw new Error("nothing was added yet");
    return table;
  };
  return {
    async add(first, vectors) {
      const rows = Array.from({ length: vectors.length / DIMENSIONS }, (_, index) => ({
        row: first + index,
        scope: (first + index) % SCOPES,
        vector: [...vectors.subarray(index * DIMENSIONS, (index + 1) * DIMENSIONS)],
      }));
      if (table === null) table = await connection.createTable("passages", rows);
      else await table.add(rows);
    },
    async finish() {
      await opened().optimize(); // one file instead of one for each addition
      await opened().createIndex("scope");
    },
    async search(vector, k, scope) {
      const query = opened()
        .vectorSearch(vector)
        .distanceType("cosine")
        .select(["row", "_distance"])
        .limit(k);
      const found = await (scope === null ? query : query.where(`scope = ${scope}`)).toArray();
      return found.map(({ row }) => row);
    },
  };
}

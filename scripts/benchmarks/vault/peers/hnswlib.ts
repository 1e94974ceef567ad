import { SCOPES } from "../passages.ts";
import { importIfThere, type Peer } from "./peer.ts";
import { DIMENSIONS } from "./vectors.ts";

/**
 * How many neighbours a search keeps in view. Of 100,000 such vectors, the default of 10 finds 1 of the nearest ten,
 * 100 finds 4, and 800 finds 8. With a filter, only vectors that pass it count, so a smaller number finds all of them
 * and a larger one takes much longer.
 */
const EF = { all: 800, scope: 100 } as const;

/** The part of `hnswlib-node` that is used here. */
interface Hnswlib {
  readonly HierarchicalNSW: new (space: "cosine", dimensions: number) => Index;
}
interface Index {
  initIndex(options: { readonly maxElements: number }): void;
  addPoint(point: number[], label: number): void;
  setEf(ef: number): void;
  searchKnn(
    query: number[],
    count: number,
    filter?: (label: number) => boolean,
  ): { readonly neighbors: readonly number[] };
}

/**
 * A graph in memory with its default parameters (M 16, ef of construction 200): approximate, and not written to disk.
 */
export async function openHnswlib(rows: number): Promise<Peer> {
  const { HierarchicalNSW } = ((await importIfThere("hnswlib-node")) as { default: Hnswlib }).default;
  const index = new HierarchicalNSW("cosine", DIMENSIONS);
  index.initIndex({ maxElements: rows });
  return {
    async add(first, vectors) {
      for (let row = 0; row * DIMENSIONS < vectors.length; row++) {
        index.addPoint([...vectors.subarray(row * DIMENSIONS, (row + 1) * DIMENSIONS)], first + row);
      }
    },
    async finish() {},
    async search(vector, k, scope) {
      const query = [...vector];
      index.setEf(scope === null ? EF.all : EF.scope);
      return scope === null
        ? index.searchKnn(query, k).neighbors
        : index.searchKnn(query, k, (label) => label % SCOPES === scope).neighbors;
    },
  };
}

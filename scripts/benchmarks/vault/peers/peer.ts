/** Another store of vectors, as the program of this folder uses it. */
export interface Peer {
  /** Adds rows `first` and following, `DIMENSIONS` numbers each. Row `i` is in scope `i % SCOPES`. */
  add(first: number, vectors: Float32Array): Promise<void>;
  /** Called once, after the last row: builds what makes searching fast. */
  finish(): Promise<void>;
  /**
   * @param scope null for all
   * @returns numbers of rows, the nearest first
   */
  search(vector: Float32Array, k: number, scope: number | null): Promise<readonly number[]>;
}

/** Imports a package that may not be there, which the type checker must not look for. */
export async function importIfThere(name: string): Promise<unknown> {
  return await import(name);
}

/** Another vector store, as the program in this folder uses it. */
export interface Peer {
  /** Adds rows from `first` on, of `DIMENSIONS` numbers each. Row `i` is in scope `i % SCOPES`. */
  add(first: number, vectors: Float32Array): Promise<void>;
  /** Called once after the last row. Builds whatever makes searching fast. */
  finish(): Promise<void>;
  /**
   * @param scope null for all scopes
   * @returns numbers of rows, nearest first
   */
  search(vector: Float32Array, k: number, scope: number | null): Promise<readonly number[]>;
}

/** Imports a package that may be missing, and that the type checker must not look for. */
export async function importIfThere(name: string): Promise<unknown> {
  return await import(name);
}

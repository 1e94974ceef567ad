/** sqlite-vec's entry point, named explicitly because the file's name differs from the default. */
export const VEC_ENTRY = "sqlite3_vec_init";

/** The vec0 table of a space. `space` is a row's key, never external text. */
export function vectorTable(space: number): string {
  if (!Number.isSafeInteger(space) || space < 1) throw new Error("not the key of a space");
  return `vault_vectors_${space}`;
}

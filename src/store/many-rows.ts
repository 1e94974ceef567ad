/** Builds `INSERT INTO <into> VALUES ($1, …), (…)` for several rows. `into` names the table and its columns. */
export function insertRowsSql(into: string, columns: number, rows: number): string {
  const row = (index: number) =>
    `(${Array.from({ length: columns }, (_, column) => `$${index * columns + column + 1}`).join(", ")})`;
  return `INSERT INTO ${into} VALUES ${Array.from({ length: rows }, (_, index) => row(index)).join(", ")}`;
}

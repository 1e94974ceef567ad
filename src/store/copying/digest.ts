import type { SqlValue } from "../db.ts";
import type { CopiedRow, CopiedTable } from "./tables.ts";

/** The number of a table's rows, and a digest of every byte in them. */
export interface TableDigest {
  readonly rows: number;
  readonly sha256: string;
}

/** Computes the digest of a table whose rows are added in the order of its key. */
export class DigestOfRows {
  readonly #hash = new Bun.CryptoHasher("sha256");
  readonly #columns: readonly string[];
  #rows = 0;

  constructor({ columns }: Pick<CopiedTable, "columns">) {
    this.#columns = columns;
  }

  add(row: CopiedRow): void {
    this.#rows += 1;
    for (const column of this.#columns) this.#addValue(row[column] ?? null);
  }

  end(): TableDigest {
    return { rows: this.#rows, sha256: this.#hash.digest("hex") };
  }

  /** Each value begins with its type and, if that varies, its length, so no two rows have the same bytes. */
  #addValue(value: SqlValue): void {
    if (value === null) this.#hash.update("-");
    else if (typeof value === "number") this.#hash.update(`n${value};`);
    else if (typeof value === "string") this.#hash.update(`s${Buffer.byteLength(value)};${value}`);
    else this.#hash.update(`b${value.length};`).update(value);
  }
}

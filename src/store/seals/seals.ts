import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Sql, SqlValue, Tx } from "../db.ts";
import {
  type RowKey,
  SEALED_TABLES,
  type SealedColumn,
  type SealedName,
  type SealedTable,
} from "./tables.ts";

/** The values that a row's seal covers. */
export type SealedRow<Name extends SealedName> = { readonly [Column in SealedColumn<Name>]: SqlValue };

/** A row as it is stored. */
export type StoredRow<Name extends SealedName> = SealedRow<Name> & { readonly seal: Uint8Array | null };

/** A row that this server did not write in its present form. */
export interface BrokenSeal {
  readonly table: SealedName;
  /** The values of its key columns, joined by a slash. */
  readonly row: string;
  /** Null if the row belongs to no workspace. */
  readonly workspaceId: number | null;
}

/** Thrown instead of changing a row whose seal does not match: the change would seal somebody else's data. */
export class SealBroken extends Error {
  override readonly name = "SealBroken";
}

const LABEL = "gatehouse row seals v1";
const KEY_BYTES = 32;
/** Maximum number of broken rows remembered. Each is reported once per process. */
const REMEMBERED = 1_000;

/**
 * Seals rows, and checks that a row is unchanged since this server wrote it. A seal is HMAC-SHA-256 (RFC 2104) over
 * the table's name and the row's columns as JSON, with a key that HKDF (RFC 5869) derives from the node's secret key.
 * Takes 1 µs.
 *
 * Without a key, rows are not sealed and none is trusted.
 */
export class RowSeals {
  readonly #key: KeyObject | null;
  readonly #broken = new Map<string, BrokenSeal>();
  #report: (broken: BrokenSeal) => void = () => {};
  #isOutdated: (token: SealedRow<"tokens">) => boolean = () => false;

  constructor(secret: KeyObject | null) {
    this.#key = secret && createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", LABEL, KEY_BYTES)));
  }

  /** Computes the seal of a row that is about to be written. */
  of<Name extends SealedName>(table: Name, row: SealedRow<Name>): Uint8Array | null {
    return this.sealOf(table, row);
  }

  /** Like `of`, for a row read by its column names. */
  sealOf(table: SealedName, row: Readonly<Record<string, SqlValue | undefined>>): Uint8Array | null {
    if (!this.#key) return null;
    const { key, columns, added = [] }: SealedTable = SEALED_TABLES[table];
    const values: (string | number | null)[] = [table];
    for (const column of key) values.push(encoded(row[column]));
    for (const column of columns) values.push(encoded(row[column]));
    const last = added.findLastIndex((column) => encoded(row[column]) !== null);
    for (const column of added.slice(0, last + 1)) values.push(encoded(row[column]));
    return createHmac("sha256", this.#key).update(JSON.stringify(values)).digest();
  }

  /**
   * Whether a row is unchanged since this server wrote it, and the ledger has not made it outdated. A changed row is
   * reported once. MUST be checked before a row is acted on.
   */
  fits<Name extends SealedName>(table: Name, row: StoredRow<Name>): boolean;
  fits(table: SealedName, row: StoredRow<SealedName>): boolean {
    if (this.isIntact(table, row))
      return !(table === "tokens" && this.#isOutdated(row as SealedRow<"tokens">));
    this.report(table, row);
    return false;
  }

  /**
   * Makes every check of a token's row ask whether the token has ended since. A mismatch is not reported: a row that
   * was read just before the end was not changed by others, and restored rows are reported at startup.
   */
  outdateTokens(isOutdated: (token: SealedRow<"tokens">) => boolean): void {
    this.#isOutdated = isOutdated;
  }

  /** Like `fits`, but without reporting. */
  isIntact(table: SealedName, row: Readonly<Record<string, SqlValue | undefined>>): boolean {
    const { seal } = row;
    const expected = this.sealOf(table, row);
    return (
      expected !== null &&
      seal instanceof Uint8Array &&
      seal.length === expected.length &&
      timingSafeEqual(seal, expected)
    );
  }

  /**
   * Changes a row and seals it again, if its current seal matches.
   * @param work MUST change no other sealed row
   * @throws SealBroken; in that case nothing is changed
   */
  async change<Name extends SealedName, Result>(
    tx: Tx,
    table: Name,
    row: { readonly [Column in RowKey<Name>]: SqlValue },
    work: () => Promise<Result>,
  ): Promise<Result> {
    const before = await readSealed(tx, table, row);
    if (before && !this.isIntact(table, before)) {
      this.report(table, before);
      throw new SealBroken(
        `the row ${rowName(table, before).name} of ${table} is not as this server wrote it`,
      );
    }
    const result = await work();
    await this.seal(tx, table, row);
    return result;
  }

  /**
   * Seals a row in its present form. MUST NOT be used on a row that was read from the store without checking its
   * seal: see `change`.
   */
  async seal(
    tx: Pick<Tx, "get" | "write">,
    table: SealedName,
    row: Readonly<Record<string, SqlValue>>,
  ): Promise<void> {
    const now = await readSealed(tx, table, row);
    if (!now) return;
    const { where, values } = placeOf(table, row);
    tx.write(`UPDATE ${table} SET seal = $${values.length + 1} WHERE ${where}`, [
      ...values,
      this.sealOf(table, now),
    ]);
  }

  /** Calls `listener` for each row whose seal does not match, including those already found. */
  onBroken(listener: (broken: BrokenSeal) => void): void {
    this.#report = listener;
    for (const broken of this.#broken.values()) listener(broken);
  }

  /**
   * Reports, once, a row that this server did not write. Also used for rows whose seal matches but which the ledger
   * contradicts.
   */
  report(table: SealedName, row: Readonly<Record<string, SqlValue | undefined>>): void {
    const { name, workspaceId } = rowName(table, row);
    const id = `${table} ${name}`;
    if (this.#broken.has(id) || this.#broken.size >= REMEMBERED) return;
    const broken = { table, row: name, workspaceId };
    this.#broken.set(id, broken);
    this.#report(broken);
  }
}

/** The key and sealed columns of a table. */
export function sealedColumnNames(table: SealedName): readonly string[] {
  const { key, columns, added = [] }: SealedTable = SEALED_TABLES[table];
  return [...key, ...columns, ...added];
}

/** The key and sealed columns of a table and its seal column, for a query. */
export function sealedColumns(table: SealedName): string {
  return [...sealedColumnNames(table), "seal"].join(", ");
}

function readSealed(
  sql: Pick<Sql, "get">,
  table: SealedName,
  row: Readonly<Record<string, SqlValue>>,
): Promise<Readonly<Record<string, SqlValue>> | undefined> {
  const { where, values } = placeOf(table, row);
  return sql.get(`SELECT ${sealedColumns(table)} FROM ${table} WHERE ${where}`, values);
}

function placeOf(
  table: SealedName,
  row: Readonly<Record<string, SqlValue>>,
): { readonly where: string; readonly values: readonly SqlValue[] } {
  const { key } = SEALED_TABLES[table];
  return {
    where: key.map((column, index) => `${column} = $${index + 1}`).join(" AND "),
    values: key.map((column) => row[column] ?? null),
  };
}

/** The values of a row's key columns, joined by a slash, and the workspace that it belongs to. */
export function rowName(
  table: SealedName,
  row: Readonly<Record<string, SqlValue | undefined>>,
): { readonly name: string; readonly workspaceId: number | null } {
  const name = SEALED_TABLES[table].key.map((column) => String(row[column])).join("/");
  const workspace = table === "workspaces" ? row.id : row.workspace_id;
  return { name, workspaceId: typeof workspace === "number" ? workspace : null };
}

/** The tables are STRICT, so the column's type distinguishes bytes from text. */
function encoded(value: SqlValue | undefined): string | number | null {
  return value instanceof Uint8Array ? value.toHex() : (value ?? null);
}

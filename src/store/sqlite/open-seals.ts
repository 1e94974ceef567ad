import { OperatorError } from "../../base/errors.ts";
import type { SqlValue } from "../db.ts";
import { RowSeals, sealedColumns } from "../seals/seals.ts";
import { SEALED_NAMES, SEALED_TABLES } from "../seals/tables.ts";
import type { SecretKey } from "../secret-key.ts";
import type { Connection } from "./connection.ts";

export interface SealOptions {
  readonly key: SecretKey;
  /** The operator accepts all rows as they are: they are sealed with this key, whatever seals they have. */
  readonly acceptRows?: boolean;
}

const RESEAL = "if you have reviewed the rows and accept them as they are, run `gatehouse reseal`";

/**
 * Opens the seals of a store's rows. The rows of a store from a version without seals are sealed once. The key's file
 * then records that (`SecretKey.hasSealed`), so anyone who can write the database, but not that file, cannot pass off
 * forged rows as old ones.
 *
 * @throws OperatorError if the rows are sealed with another key or have lost their seals
 */
export function openSeals(connection: Connection, { key, acceptRows = false }: SealOptions): RowSeals {
  const seals = new RowSeals(key.secret);
  const keyId = Buffer.from(key.id).toString("hex");
  const isUnsealed = metaValue(connection, "seals") === "unsealed";
  const storedId = metaValue(connection, "seal_key");
  if (!acceptRows && isUnsealed && key.hasSealed) {
    throw new OperatorError(
      "the rows of the database have no seals, although the key of this data directory has been used to seal rows: the seals were removed, or the database is older than its key file",
      `restore the database that belongs to the key, or the secrets.key that belongs to this database; ${RESEAL}`,
    );
  }
  if (!acceptRows && storedId !== undefined && storedId !== keyId) {
    throw new OperatorError(
      "the rows of the database are sealed with another key: secrets.key or master_key has changed",
      `restore the previous secrets.key or master_key; if that key is lost, ${RESEAL.replace("if ", "and ")}`,
    );
  }
  if (!acceptRows && !isUnsealed && storedId !== undefined) return seals;
  connection.database.transaction(() => {
    const rows = acceptRows || isUnsealed ? sealAll(connection, seals) : 0;
    setMeta(connection, "seal_key", keyId, null);
    if (rows > 0)
      setMeta(connection, "seals", String(rows), seals.of("meta", { key: "seals", value: String(rows) }));
    else connection.run("DELETE FROM meta WHERE key = 'seals'");
  })();
  return seals;
}

/** Seals every row of every sealed table. @returns the number of rows */
function sealAll(connection: Connection, seals: RowSeals): number {
  let count = 0;
  for (const table of SEALED_NAMES) {
    const { key, sealed } = SEALED_TABLES[table];
    connection.run(`UPDATE ${table} SET seal = NULL WHERE seal IS NOT NULL`);
    const where = key.map((column, index) => `${column} = $${index + 1}`).join(" AND ");
    const update = `UPDATE ${table} SET seal = $${key.length + 1} WHERE ${where}`;
    const rows = connection.all<Readonly<Record<string, SqlValue>>>(
      `SELECT ${sealedColumns(table)} FROM ${table} WHERE ${sealed}`,
    );
    for (const row of rows) {
      connection.run(update, [...key.map((column) => row[column] ?? null), seals.sealOf(table, row)]);
    }
    count += rows.length;
  }
  return count;
}

function metaValue(connection: Connection, key: string): string | undefined {
  return connection.get<{ value: string }>("SELECT value FROM meta WHERE key = $1", [key])?.value;
}

function setMeta(connection: Connection, key: string, value: string, seal: Uint8Array | null): void {
  connection.run(
    "INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE SET value = excluded.value, seal = excluded.seal",
    [key, value, seal],
  );
}

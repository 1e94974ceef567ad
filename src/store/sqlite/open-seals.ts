import { OperatorError } from "../../base/errors.ts";
import type { SqlValue } from "../db.ts";
import type { SealingNote } from "../seals/sealing-note.ts";
import { RowSeals, sealedColumns } from "../seals/seals.ts";
import { SEALED_NAMES, SEALED_TABLES } from "../seals/tables.ts";
import { checkRows, hasIntactRow, type ReadRows, type SealedRowsCheck } from "../seals/unsealed-rows.ts";
import type { SecretKey } from "../secret-key.ts";
import type { Connection } from "./connection.ts";

export interface SealOptions {
  readonly key: SecretKey;
  /**
   * Called with the rows whose seals do not match, before they are sealed with this key as they are. MUST throw if
   * the operator does not accept them; in that case nothing is sealed.
   */
  readonly acceptRows?: ((check: SealedRowsCheck) => void) | undefined;
}

const RESEAL = "if you have reviewed the rows and accept them as they are, run `gatehouse reseal`";
/** Maximum number of accepted rows that the ledgers name individually. */
const MOST_NAMED = 1_000;

/**
 * Opens the seals of a store's rows. If the store comes from a version without seals, its rows are sealed once. The
 * key's file then records that (`SecretKey.hasSealed`), so anyone who can write the database, but not that file,
 * cannot pass off forged rows as old ones. The database's own statements about its seals count only if no row has a
 * seal made with this key.
 *
 * @throws OperatorError if the rows are sealed with another key or have lost their seals
 */
export function openSeals(connection: Connection, { key, acceptRows }: SealOptions): RowSeals {
  const seals = new RowSeals(key.secret);
  const read: ReadRows = (sql) => connection.all(sql);
  const keyId = Buffer.from(key.id).toString("hex");
  const isUnsealed = metaValue(connection, "seals") === "unsealed";
  const storedId = metaValue(connection, "seal_key");
  const isOther = storedId !== undefined && storedId !== keyId;
  if (!acceptRows) {
    if (!isUnsealed && storedId === keyId) return seals;
    const isOwn = (isUnsealed || isOther) && hasIntactRow(read, seals);
    if (isUnsealed && (key.hasSealed || isOwn)) {
      throw new OperatorError(
        "the rows of the database have no seals, although the key of this data directory has been used to seal rows: the seals were removed, or the database is older than its key file",
        `restore the database that belongs to the key, or the secrets.key that belongs to this database; ${RESEAL}`,
      );
    }
    if (isOther && !isOwn) {
      throw new OperatorError(
        "the rows of the database are sealed with another key: secrets.key or master_key has changed",
        `restore the previous secrets.key or master_key; if that key is lost, ${RESEAL.replace("if ", "and ")}`,
      );
    }
    // Rows have seals made with this key, so somebody changed the name of the key. Rows that they also changed are
    // found as usual.
    if (isOther) seals.report("meta", { key: "seal_key" });
  }
  const seal = connection.database.transaction(() => {
    // Under the write lock, so no row changes between the operator's review and the seal.
    const check = acceptRows && checkRows(read, seals);
    if (check) acceptRows?.(check);
    const rows = check || isUnsealed ? sealAll(connection, seals) : 0;
    setMeta(connection, "seal_key", keyId, null);
    if (rows > 0) {
      const accepted = (check?.broken ?? []).slice(0, MOST_NAMED);
      const note: SealingNote = {
        rows,
        accepted: check?.brokenCount ?? 0,
        // If the key was lost, all rows are accepted, so their number suffices.
        named:
          check && check.intact > 0
            ? accepted.map(({ table, name: row, workspaceId }) => ({ table, row, workspaceId }))
            : [],
      };
      const value = JSON.stringify(note);
      setMeta(connection, "seals", value, seals.of("meta", { key: "seals", value }));
    } else connection.run("DELETE FROM meta WHERE key = 'seals'");
  });
  seal.immediate();
  return seals;
}

/** Seals every row of every sealed table. @returns the number of rows */
function sealAll(connection: Connection, seals: RowSeals): number {
  let count = 0;
  // Only the server that has read the ledger may vouch for these notes. They are deleted, and the next check reads
  // the ledger again.
  connection.run("DELETE FROM meta WHERE key LIKE 'ledger_history:%'");
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

import type { Sql, Tx } from "../../store/db.ts";

/** The public keys, 32 bytes each, oldest first. The last one is in force. */
export async function storedKeys(sql: Pick<Sql, "all">): Promise<Uint8Array[]> {
  const rows = await sql.all<{ public_key: Uint8Array }>("SELECT public_key FROM ledger_keys ORDER BY id");
  return rows.map(({ public_key }) => public_key);
}

/** @param now milliseconds since 1970 */
export function insertKey(tx: Tx, publicKey: Uint8Array, now: number): void {
  tx.write("INSERT INTO ledger_keys (public_key, created_at) VALUES ($1, $2)", [publicKey, now]);
}

/** Retires the key in force, and inserts its successor. @param now milliseconds since 1970 */
export function replaceKey(tx: Tx, publicKey: Uint8Array, now: number): void {
  tx.write("UPDATE ledger_keys SET retired_at = $1 WHERE retired_at IS NULL", [now]);
  insertKey(tx, publicKey, now);
}

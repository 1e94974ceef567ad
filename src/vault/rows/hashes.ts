import type { RandomSource } from "../../base/ids.ts";
import type { Db } from "../../store/db.ts";
import type { MetadataValue } from "../messages.ts";

const KEY_BYTES = 32;
const HASH_BYTES = 16;

/**
 * A keyed hash that replaces text in an index (HMAC-SHA-256, first 16 bytes), so that the index alone does not reveal
 * guessable text.
 */
export interface Hashes {
  source(uri: string): Uint8Array;
  metadata(name: string, value: MetadataValue): Uint8Array;
}

/** Uses the store's own key, created at the first start. */
export async function openHashes(db: Db, random: RandomSource): Promise<Hashes> {
  const fresh = new Uint8Array(KEY_BYTES);
  random(fresh);
  const row = await db.tx(null, (tx) =>
    tx.get<{ value: string }>(
      `INSERT INTO meta (key, value) VALUES ('vault_hash_key', $1)
       ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value`,
      [Buffer.from(fresh).toString("hex")],
    ),
  );
  if (!row) throw new Error("the store has no key for hashes");
  const key = Buffer.from(row.value, "hex");
  const hash = (text: string) =>
    new Uint8Array(new Bun.CryptoHasher("sha256", key).update(text).digest().subarray(0, HASH_BYTES));
  return {
    source: (uri) => hash(`source\0${uri}`),
    metadata: (name, value) => hash(`metadata\0${name}\0${JSON.stringify(value)}`),
  };
}

import { OperatorError } from "../../base/errors.ts";
import type { RandomSource } from "../../base/ids.ts";
import type { Db, Sql } from "../../store/db.ts";
import type { SealedKeys } from "../../store/sealed-keys.ts";
import {
  createSigningKey,
  formatSigningKey,
  type KeyUse,
  type NewSigningKey,
  parseSigningKey,
  publicBytes,
  type SigningKey,
  type SigningKeyStore,
} from "./signing-key.ts";

const PURPOSE = "ledger";
const CHANGED_HINT =
  "keep a copy of the database, find out what was changed (gatehouse ledger verify, with a key that you kept), and restore a backup";

/**
 * Keeps the signing key in a store that several nodes share, sealed under the master key. Its replacement is written in
 * the transaction that puts it in force.
 */
export class SealedSigningKey implements SigningKeyStore {
  readonly #db: Db;
  readonly #keys: SealedKeys;

  constructor(db: Db, keys: SealedKeys) {
    this.#db = db;
    this.#keys = keys;
  }

  async readInForce(
    publicKey: Uint8Array,
    sql: Pick<Sql, "get"> = this.#db,
  ): Promise<SigningKey | undefined> {
    const stored = await this.#keys.read(PURPOSE, sql);
    if (!stored) return undefined;
    const signing = parseSigningKey(Buffer.from(stored.secret).toString("latin1"));
    if (!signing || idOf(signing) !== publicKey.toHex()) throw await this.#notInForce(publicKey, sql);
    // Somebody who can write the store could put back the row from before the mark. Here, entries have always been
    // committed together with their signed head.
    const hasEntries = (await sql.get("SELECT 1 FROM ledger LIMIT 1")) !== undefined;
    return hasEntries ? { ...signing, use: "node_head" } : signing;
  }

  async first(random: RandomSource): Promise<NewSigningKey> {
    return this.#newKey(createSigningKey(random, "none"), null);
  }

  async replacement(publicKey: Uint8Array, random: RandomSource, use: KeyUse): Promise<NewSigningKey> {
    return this.#newKey(createSigningKey(random, use), publicKey.toHex());
  }

  async mark(key: SigningKey): Promise<void> {
    // Not written if another node has replaced the key. That node has marked its replacement.
    await this.#db.tx(null, (tx) => this.#newKey(key, idOf(key)).write(tx));
  }

  refusal(reason: "missing" | "no_public_key"): OperatorError {
    if (reason === "missing") {
      return new OperatorError(
        "the signing key of the ledgers is missing from the table sealed_keys",
        "restore the table from a backup; if there is none, run `gatehouse ledger rotate-key --lost`",
      );
    }
    return new OperatorError(
      "the database has a signing key or signed heads of ledgers, but no public key: the rows of `ledger_keys` were removed",
      CHANGED_HINT,
    );
  }

  #newKey(key: SigningKey, replaces: string | null): NewSigningKey {
    return { ...key, write: (tx) => this.#keys.put(tx, storedSigningKey(key, replaces)), complete() {} };
  }

  async #notInForce(publicKey: Uint8Array, sql: Pick<Sql, "get">): Promise<OperatorError> {
    const newest = await sql.get<{ public_key: Uint8Array }>(
      "SELECT public_key FROM ledger_keys ORDER BY id DESC LIMIT 1",
    );
    if (newest && Buffer.compare(newest.public_key, publicKey) !== 0)
      return new OperatorError("another node has just replaced the signing key", "start again");
    return new OperatorError(
      "the key in the table sealed_keys is not the one in force: somebody has changed that table or `ledger_keys`",
      CHANGED_HINT,
    );
  }
}

/** A key in the form in which it is put into a store, in place of the key with the id `replaces`. */
export function storedSigningKey(key: SigningKey, replaces: string | null) {
  const secret = Buffer.from(formatSigningKey(key));
  return { purpose: PURPOSE, id: idOf(key), secret, replaces } as const;
}

/** The public key in hexadecimal digits. */
function idOf({ key }: SigningKey): string {
  return publicBytes(key).toHex();
}

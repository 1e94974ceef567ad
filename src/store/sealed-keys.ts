import { createSecretKey, hkdfSync } from "node:crypto";
import { OperatorError } from "../base/errors.ts";
import type { Db, Sql, Tx } from "./db.ts";
import { open, SealDamaged, seal, WrongKey } from "./sealed-value.ts";
import type { SealingKey } from "./secret-key.ts";

/** What a key in the store is for. There is at most one key for each. */
export type KeyPurpose = "ledger" | "webhook";

export interface StoredKey {
  /** Distinguishes the key from its predecessors. */
  readonly id: string;
  readonly secret: Uint8Array;
}

interface NewKey extends StoredKey {
  readonly purpose: KeyPurpose;
  /** The id of the key that this one replaces, which may be missing; null if there must be none. */
  readonly replaces: string | null;
}

interface Row {
  readonly id: string;
  readonly sealed: Uint8Array;
}

const LABEL = "gatehouse sealed keys v1";
const KEY_BYTES = 32;
/** The row that only the master key opens. Its secret is empty. */
const CHECK = { purpose: "check", id: "1", secret: new Uint8Array(0) } as const;
const DAMAGED_HINTS: Readonly<Record<KeyPurpose | "check", string>> = {
  check: "restore the table `sealed_keys` from a backup",
  ledger:
    "restore the table `sealed_keys` from a backup; if there is none, delete this row and run `gatehouse ledger rotate-key --lost`",
  webhook:
    "restore the table `sealed_keys` from a backup, or delete this row: the next start creates a new secret, which the receiver must then be given",
};
/** Writes nothing if there is another key than the one to be replaced. */
const PUT = `INSERT INTO sealed_keys (purpose, id, sealed) VALUES ($1, $2, $3)
  ON CONFLICT (purpose) DO UPDATE SET id = excluded.id, sealed = excluded.sealed WHERE sealed_keys.id = $4`;
const PUT_FIRST = `INSERT INTO sealed_keys (purpose, id, sealed) VALUES ($1, $2, $3)
  ON CONFLICT (purpose) DO NOTHING`;

/**
 * The private keys of a store that several nodes share, in the table `sealed_keys`. They are encrypted under a key that
 * HKDF (RFC 5869) derives from the master key. A row is useless in another row's place, but somebody who can write the
 * table can put back an older row of the same purpose. So whoever reads a key MUST know which one to expect.
 */
export class SealedKeys {
  readonly #db: Db;
  readonly #key: SealingKey;

  private constructor(db: Db, key: SealingKey) {
    this.#db = db;
    this.#key = key;
  }

  /** @throws OperatorError if the store's keys are sealed with another master key */
  static async open(db: Db, masterKey: SealingKey): Promise<SealedKeys> {
    const derived = Buffer.from(hkdfSync("sha256", masterKey.secret, "", LABEL, KEY_BYTES));
    const keys = new SealedKeys(db, { secret: createSecretKey(derived), id: masterKey.id });
    derived.fill(0);
    await keys.#check();
    return keys;
  }

  /** @throws OperatorError if the key was changed */
  async read(purpose: KeyPurpose, sql: Pick<Sql, "get"> = this.#db): Promise<StoredKey | undefined> {
    const row = await this.#row(purpose, sql);
    if (!row) return undefined;
    try {
      return { id: row.id, secret: open(this.#key, row.sealed, contextOf(purpose, row.id)) };
    } catch (error) {
      // The check row has shown that the master key is the right one.
      if (error instanceof SealDamaged || error instanceof WrongKey) throw damaged(purpose);
      throw error;
    }
  }

  /** @returns false if another key was stored in the meantime. Then nothing is written */
  async put(tx: Tx, { purpose, id, secret, replaces }: NewKey): Promise<boolean> {
    const values = [purpose, id, seal(this.#key, secret, contextOf(purpose, id))];
    const changed = await (replaces === null
      ? tx.run(PUT_FIRST, values)
      : tx.run(PUT, [...values, replaces]));
    return changed === 1;
  }

  /** The first start writes the check row. If several nodes start at once, the first one determines the master key. */
  async #check(): Promise<void> {
    const { purpose, id, secret } = CHECK;
    if (!(await this.#row(purpose))) {
      await this.#db.tx(null, async (tx) => {
        // Beside keys, a new check row could be made with any master key.
        if (await tx.get("SELECT 1 FROM sealed_keys LIMIT 1")) return;
        await tx.run(PUT_FIRST, [purpose, id, seal(this.#key, secret, contextOf(purpose, id))]);
      });
    }
    const row = await this.#row(purpose);
    if (!row) throw damaged(purpose);
    try {
      open(this.#key, row.sealed, contextOf(purpose, row.id));
    } catch (error) {
      if (error instanceof SealDamaged) throw damaged(purpose);
      if (!(error instanceof WrongKey)) throw error;
      throw new OperatorError(
        "the store's keys are sealed with another master key",
        "set GATEHOUSE_MASTER_KEY (master_key) to the value with which the store was first used; all its nodes need the same one",
      );
    }
  }

  #row(purpose: string, sql: Pick<Sql, "get"> = this.#db): Promise<Row | undefined> {
    return sql.get<Row>("SELECT id, sealed FROM sealed_keys WHERE purpose = $1", [purpose]);
  }
}

function contextOf(purpose: string, id: string): string {
  return `key\n${purpose}\n${id}`;
}

function damaged(purpose: KeyPurpose | "check"): OperatorError {
  return new OperatorError(
    `the row "${purpose}" of the table sealed_keys was changed, damaged or removed`,
    DAMAGED_HINTS[purpose],
  );
}

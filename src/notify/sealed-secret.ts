import type { RandomSource } from "../base/ids.ts";
import type { Db } from "../store/db.ts";
import type { SealedKeys } from "../store/sealed-keys.ts";
import { createWebhookSecret, type WebhookSecretStore } from "./secret.ts";

const PURPOSE = "webhook";
/** The secret is never replaced. */
const ID = "1";

/** Keeps the webhook's secret in a store that several nodes share, sealed under the master key. */
export class SealedWebhookSecret implements WebhookSecretStore {
  readonly #db: Pick<Db, "tx">;
  readonly #keys: SealedKeys;

  constructor(db: Pick<Db, "tx">, keys: SealedKeys) {
    this.#db = db;
    this.#keys = keys;
  }

  async readOrCreate(random: RandomSource): Promise<Uint8Array> {
    const known = await this.#keys.read(PURPOSE);
    if (known) return known.secret;
    const secret = createWebhookSecret(random);
    const isFirst = await this.#db.tx(null, (tx) => this.#keys.put(tx, firstWebhookSecret(secret)));
    // Otherwise another node has created it in the meantime.
    return isFirst ? secret : this.readOrCreate(random);
  }
}

/** A secret in the form in which it is put into a store that has none. */
export function firstWebhookSecret(secret: Uint8Array) {
  return { purpose: PURPOSE, id: ID, secret, replaces: null } as const;
}

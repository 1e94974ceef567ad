import { join } from "node:path";
import { type RandomSource, systemRandom } from "../base/ids.ts";
import { makeKeyFile, readKeyFile } from "../store/key-file.ts";
import { decodeSecret, encodeSecret } from "./signature.ts";

/** Keeps the secret that signs deliveries, unless the settings contain one. */
export interface WebhookSecretStore {
  /** The kept secret. The first call creates it. @throws OperatorError if it cannot be used */
  readOrCreate(random: RandomSource): Promise<Uint8Array>;
}

export interface WebhookSecretParts {
  /** The setting `notify.secret`. If set, nothing is read or created. */
  readonly configured: string | undefined;
  readonly secretStore: WebhookSecretStore;
  readonly random?: RandomSource;
}

const SECRET_FILE = "webhook.key";
const SECRET_BYTES = 32;

/** The bytes that sign deliveries. @throws OperatorError if the kept secret cannot be used */
export async function openWebhookSecret(parts: WebhookSecretParts): Promise<Uint8Array> {
  const { configured, secretStore, random = systemRandom } = parts;
  const given = configured === undefined ? undefined : decodeSecret(configured);
  return given ?? secretStore.readOrCreate(random);
}

/**
 * Keeps the secret in `webhook.key` in the data directory (mode 0600), in the form that receivers expect.
 */
export class WebhookSecretFile implements WebhookSecretStore {
  readonly #path: string;

  constructor(directory: string) {
    this.#path = join(directory, SECRET_FILE);
  }

  async readOrCreate(random: RandomSource): Promise<Uint8Array> {
    const known = this.read();
    if (known) return known;
    const made = createWebhookSecret(random);
    this.write(made);
    return made;
  }

  /** Undefined if there is no file. @throws OperatorError if it cannot be used */
  read(): Uint8Array | undefined {
    return readKeyFile(
      this.#path,
      (content) => decodeSecret(content.trim()),
      "restore it from a backup, or remove it: the next start creates a new one, which the receiver must then be given",
    );
  }

  /** Creates the file, which MUST not exist. @throws OperatorError */
  write(secret: Uint8Array): void {
    makeKeyFile(this.#path, `${encodeSecret(secret)}\n`);
  }
}

export function createWebhookSecret(random: RandomSource): Uint8Array {
  const secret = new Uint8Array(SECRET_BYTES);
  random(secret);
  return secret;
}

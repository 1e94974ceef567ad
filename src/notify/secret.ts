import { join } from "node:path";
import { type RandomSource, systemRandom } from "../base/ids.ts";
import { makeKeyFile, readKeyFile } from "../store/key-file.ts";
import { decodeSecret, encodeSecret } from "./signature.ts";

export interface WebhookSecretPlace {
  /** The setting `notify.secret`; where it is set, no file is read or made. */
  readonly configured: string | undefined;
  readonly dataDir: string;
  readonly random?: RandomSource;
}

const SECRET_FILE = "webhook.key";
const SECRET_BYTES = 32;

/**
 * The bytes that deliveries are signed with: those of the setting, else those of `webhook.key` in the data directory, which
 * the first call makes (mode 0600). The file holds the secret as receivers take it, so that an operator can read it there.
 *
 * @throws OperatorError where the file cannot be used
 */
export function openWebhookSecret({ configured, dataDir, random = systemRandom }: WebhookSecretPlace) {
  const given = configured === undefined ? undefined : decodeSecret(configured);
  if (given) return given;
  const path = join(dataDir, SECRET_FILE);
  const known = readKeyFile(
    path,
    (content) => decodeSecret(content.trim()),
    "put the backup of it back, or remove it: the next start makes a new one, which the receiver has to be given",
  );
  if (known) return known;
  const made = new Uint8Array(SECRET_BYTES);
  random(made);
  makeKeyFile(path, `${encodeSecret(made)}\n`);
  return made;
}

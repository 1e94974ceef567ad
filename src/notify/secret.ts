import { join } from "node:path";
import { type RandomSource, systemRandom } from "../base/ids.ts";
import { makeKeyFile, readKeyFile } from "../store/key-file.ts";
import { decodeSecret, encodeSecret } from "./signature.ts";

export interface WebhookSecretPlace {
  /** The setting `notify.secret`. If set, no file is read or created. */
  readonly configured: string | undefined;
  readonly dataDir: string;
  readonly random?: RandomSource;
}

const SECRET_FILE = "webhook.key";
const SECRET_BYTES = 32;

/**
 * The bytes that sign deliveries: from the setting, otherwise from `webhook.key` in the data directory, which the
 * first call creates (mode 0600) in the form that receivers expect.
 *
 * @throws OperatorError if the file cannot be used
 */
export function openWebhookSecret({ configured, dataDir, random = systemRandom }: WebhookSecretPlace) {
  const given = configured === undefined ? undefined : decodeSecret(configured);
  if (given) return given;
  const path = join(dataDir, SECRET_FILE);
  const known = readKeyFile(
    path,
    (content) => decodeSecret(content.trim()),
    "restore it from a backup, or remove it: the next start creates a new one, which the receiver must then be given",
  );
  if (known) return known;
  const made = new Uint8Array(SECRET_BYTES);
  random(made);
  makeKeyFile(path, `${encodeSecret(made)}\n`);
  return made;
}

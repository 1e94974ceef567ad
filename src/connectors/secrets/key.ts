import { createHash, createSecretKey, type KeyObject } from "node:crypto";
import { join } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import { type RandomSource, systemRandom } from "../../base/ids.ts";
import { makeKeyFile, readKeyFile } from "../../store/key-file.ts";

/** The key that secrets at rest are sealed with. The bytes stay inside of the KeyObject, which prints none of them. */
export interface SecretKey {
  readonly secret: KeyObject;
  /** Tells one key from another and nothing about it. 8 bytes. */
  readonly id: Uint8Array;
  /** Where it is kept, for a backup's warning: without it, a copy of the database opens no secret. */
  readonly from: "setting" | "file";
}

export interface KeyPlace {
  /** The setting `master_key`; where it is set, no file is read or made. */
  readonly masterKey: string | undefined;
  readonly dataDir: string;
  readonly random?: RandomSource;
}

export const KEY_BYTES = 32;
export const KEY_ID_BYTES = 8;
const KEY_FILE = "secrets.key";
const ID_DOMAIN = "gatehouse secret key id v1\n";

/**
 * The configured key, else the one of `secrets.key` in the data directory, which the first call makes (mode 0600). The
 * directory has to be there, and locked by this process.
 *
 * @throws OperatorError where the key or its file cannot be used
 */
export function openSecretKey({ masterKey, dataDir, random = systemRandom }: KeyPlace): SecretKey {
  if (masterKey !== undefined) {
    const bytes = decodeKey(masterKey);
    if (bytes) return secretKey(bytes, "setting");
    throw new OperatorError(
      "master_key is not 32 bytes in base64, base64url or hex",
      "make one with `openssl rand -base64 32`",
      2,
    );
  }
  const path = join(dataDir, KEY_FILE);
  return secretKey(readKey(path) ?? makeKey(path, random), "file");
}

/** 32 bytes as 64 hexadecimal digits, or as 43 base64 characters of either alphabet, padded or not; undefined for others. */
export function decodeKey(text: string): Uint8Array | undefined {
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return Buffer.from(text, "hex");
  // The last character carries four bits, so that its two low ones are zero.
  const base64 = /^(?:[A-Za-z0-9+/]{42}|[A-Za-z0-9_-]{42})[AEIMQUYcgkosw048]=?$/;
  return base64.test(text) ? Buffer.from(text, "base64") : undefined;
}

function secretKey(bytes: Uint8Array, from: SecretKey["from"]): SecretKey {
  const id = createHash("sha256").update(ID_DOMAIN).update(bytes).digest().subarray(0, KEY_ID_BYTES);
  const secret = createSecretKey(bytes);
  bytes.fill(0);
  return { secret, id, from };
}

function readKey(path: string): Uint8Array | undefined {
  return readKeyFile(
    path,
    (content) => decodeKey(content.trim()),
    "put the backup of it back; without it, connectors have to be added anew and the file removed",
  );
}

function makeKey(path: string, random: RandomSource): Uint8Array {
  const bytes = new Uint8Array(KEY_BYTES);
  random(bytes);
  makeKeyFile(path, `${Buffer.from(bytes).toString("base64")}\n`);
  return bytes;
}

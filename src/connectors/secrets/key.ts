import { createHash, createSecretKey, type KeyObject } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import { type RandomSource, systemRandom } from "../../base/ids.ts";

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
/** The file holds 44 characters and a line break; anything longer is something else. */
const KEY_FILE_LIMIT = 256;
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
  return secretKey(readKeyFile(path) ?? makeKeyFile(path, random), "file");
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

function readKeyFile(path: string): Uint8Array | undefined {
  let descriptor: number;
  try {
    // A pipe in its place would be waited for.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw unusable(path, `cannot be opened (${codeOf(error)})`, "let this user read it");
  }
  try {
    const stats = fstatSync(descriptor);
    const { mode } = stats;
    if (!stats.isFile()) throw unusable(path, "is not a file", "remove what stands in its place");
    if ((mode & 0o077) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, "0");
      throw unusable(path, `may be used by others than its owner (mode ${shown})`, `run chmod 600 ${path}`);
    }
    const content = Buffer.alloc(KEY_FILE_LIMIT);
    const length = readSync(descriptor, content, 0, KEY_FILE_LIMIT, 0);
    const bytes = decodeKey(content.toString("latin1", 0, length).trim());
    content.fill(0);
    if (bytes) return bytes;
    throw unusable(
      path,
      "holds no key",
      "put the backup of it back; without it, connectors have to be added anew and the file removed",
    );
  } finally {
    closeSync(descriptor);
  }
}

/** Written and synced under another name first: whatever happens, a file of this name holds a whole key. */
function makeKeyFile(path: string, random: RandomSource): Uint8Array {
  const bytes = new Uint8Array(KEY_BYTES);
  random(bytes);
  const draft = `${path}.new`;
  try {
    // What a process left that died before the link was made: nothing was sealed with it.
    rmSync(draft, { force: true });
    const descriptor = openSync(draft, "wx", 0o600);
    try {
      writeSync(descriptor, `${Buffer.from(bytes).toString("base64")}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    // Not a rename: that would overwrite a key which somebody put there meanwhile.
    linkSync(draft, path);
    rmSync(draft);
    syncDirectory(join(path, ".."));
  } catch (error) {
    throw unusable(path, `cannot be made (${codeOf(error)})`, "let this user write the data directory");
  }
  return bytes;
}

/** The name has to last as well: secrets sealed with a key that a power cut took away are lost. */
function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function unusable(path: string, what: string, hint: string): OperatorError {
  return new OperatorError(`the key file ${path} ${what}`, hint);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

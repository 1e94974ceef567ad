import { createCipheriv, createDecipheriv } from "node:crypto";
import { type RandomSource, systemRandom } from "../base/ids.ts";
import { KEY_ID_BYTES, type SealingKey } from "./secret-key.ts";

/** The value was sealed with another key. The message may be shown. */
export class WrongKey extends Error {
  override readonly name = "WrongKey";

  constructor() {
    super("It was sealed with another key. Restore the previous master_key or secrets.key.");
  }
}

/** The bytes were changed, cut, or moved from another place. The message may be shown. */
export class SealDamaged extends Error {
  override readonly name = "Damaged";

  constructor() {
    super("The encrypted data is damaged, or was moved from another place.");
  }
}

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES;
const OVERHEAD_BYTES = HEADER_BYTES + NONCE_BYTES + TAG_BYTES;
const ALGORITHM = "aes-256-gcm";

/**
 * Encrypts with AES-256-GCM (NIST SP 800-38D) under a new random nonce, which is safe for 2^32 values per key. The
 * bytes: version (1), key id (8), nonce (12), ciphertext, tag (16).
 *
 * @param context the place of the value, such as "connector\n<workspace>\n<name>" or "key\n<purpose>\n<id>". `open` MUST be given the same, so
 *   a sealed value is useless anywhere else
 */
export function seal(
  key: SealingKey,
  plaintext: Uint8Array | string,
  context: string,
  random: RandomSource = systemRandom,
): Uint8Array {
  const nonce = new Uint8Array(NONCE_BYTES);
  random(nonce);
  const header = headerOf(key);
  const cipher = createCipheriv(ALGORITHM, key.secret, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(additionalData(header, context));
  const text = typeof plaintext === "string" ? Buffer.from(plaintext) : plaintext;
  return Buffer.concat([header, nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/** Decrypts a sealed value. @throws WrongKey, Damaged */
export function open(key: SealingKey, sealed: Uint8Array, context: string): Buffer {
  if (sealed.length < OVERHEAD_BYTES || sealed[0] !== VERSION) throw new SealDamaged();
  const header = sealed.subarray(0, HEADER_BYTES);
  if (!headerOf(key).equals(header)) throw new WrongKey();
  const nonce = sealed.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv(ALGORITHM, key.secret, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(additionalData(header, context));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  const text = decipher.update(sealed.subarray(HEADER_BYTES + NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([text, decipher.final()]);
  } catch {
    // The tag does not match; OpenSSL gives no further details.
    throw new SealDamaged();
  }
}

function headerOf(key: SealingKey): Buffer {
  return Buffer.concat([Uint8Array.of(VERSION), key.id]);
}

function additionalData(header: Uint8Array, context: string): Buffer {
  return Buffer.concat([header, Buffer.from(context)]);
}

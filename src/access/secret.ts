import { hash } from "node:crypto";
import type { RandomSource } from "../base/ids.ts";

/**
 * The characters of a secret: after a prefix for its purpose come 43 random base62 characters (256 bits) and their
 * CRC-32 as 6 more characters, so scanners recognise secrets and typing errors are noticed.
 */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARACTERS = 43;
const CHECK_CHARACTERS = 6;
const BODY = /^[0-9A-Za-z]{49}$/;

export type SecretPrefix = typeof TOKEN_PREFIX | typeof SESSION_PREFIX | typeof LINK_PREFIX;

const TOKEN_PREFIX = "gth_";
/** The prefix of a browser session's secret, which is only sent in a cookie. */
export const SESSION_PREFIX = "gths_";
/** The prefix of a one-time sign-in link. */
export const LINK_PREFIX = "gthl_";

export function createSecret(random: RandomSource, prefix: SecretPrefix = TOKEN_PREFIX): string {
  let text = "";
  const bytes = new Uint8Array(64);
  while (text.length < RANDOM_CHARACTERS) {
    random(bytes);
    for (const byte of bytes) {
      // 248 = 4 × 62: larger bytes would favour the first characters.
      if (byte < 248 && text.length < RANDOM_CHARACTERS) text += ALPHABET[byte % 62];
    }
  }
  return prefix + text + checksum(text);
}

/** Checks only the form. Only the store knows whether the secret exists. */
export function hasSecretForm(text: string, prefix: SecretPrefix = TOKEN_PREFIX): boolean {
  return text.startsWith(prefix) && BODY.test(text.slice(prefix.length));
}

export function hasValidChecksum(secret: string): boolean {
  const body = secret.slice(TOKEN_PREFIX.length, TOKEN_PREFIX.length + RANDOM_CHARACTERS);
  return hasSecretForm(secret) && secret.endsWith(checksum(body));
}

/** Only this hash is stored. A secret has 256 random bits, so a plain hash cannot be brute-forced. */
export function hashSecret(secret: string): Buffer {
  return Buffer.from(hashSecretHex(secret), "hex");
}

export function hashSecretHex(secret: string): string {
  return hash("sha256", secret, "hex");
}

function checksum(text: string): string {
  let rest = Bun.hash.crc32(text);
  let digits = "";
  for (let index = 0; index < CHECK_CHARACTERS; index++) {
    digits = ALPHABET[rest % 62] + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

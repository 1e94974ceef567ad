import { createHmac } from "node:crypto";

const PREFIX = "whsec_";
const LEAST_BYTES = 24;
const MOST_BYTES = 64;

/** The bytes of a Standard Webhooks secret: `whsec_` and 24 to 64 bytes in base64. Undefined for anything else. */
export function decodeSecret(text: string): Uint8Array | undefined {
  if (!text.startsWith(PREFIX)) return undefined;
  const base64 = text.slice(PREFIX.length);
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(base64, "base64");
  return bytes.length >= LEAST_BYTES && bytes.length <= MOST_BYTES ? bytes : undefined;
}

export function encodeSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString("base64");
}

export interface SignedPost {
  /** Constant over retries, so that receivers can detect duplicates. */
  readonly id: string;
  /** Time of this attempt in seconds since the Unix epoch. Receivers refuse posts older than a few minutes. */
  readonly seconds: number;
  /** The exact body. */
  readonly body: string;
}

/**
 * The `webhook-signature` header of Standard Webhooks 1.0.0 (https://www.standardwebhooks.com): HMAC-SHA256 over id,
 * time and body, as `v1,` and base64.
 */
export function signPost(secret: Uint8Array, { id, seconds, body }: SignedPost): string {
  return `v1,${createHmac("sha256", secret).update(`${id}.${seconds}.${body}`).digest("base64")}`;
}

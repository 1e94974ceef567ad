import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import type { OperatorError } from "../../base/errors.ts";
import type { RandomSource } from "../../base/ids.ts";
import type { Sql, Tx } from "../../store/db.ts";

/**
 * What the key has signed, as marked where it is kept: nothing yet, the head of each ledger individually (schema 13 to
 * 15), or the node's head over all of them. Each covers more than the previous one.
 */
export type KeyUse = "none" | "ledger_heads" | "node_head";

export interface SigningKey {
  readonly key: KeyObject;
  readonly use: KeyUse;
}

/** A key that is not in force yet. */
export interface NewSigningKey extends SigningKey {
  /**
   * Part of the transaction that puts the key in force, and may be repeated with it.
   * @returns false if another node has stored a different key in the meantime. The transaction MUST then do nothing
   */
  write(tx: Tx): Promise<boolean>;
  /** MUST run once that transaction is on disk. Until then, the previous key is kept. */
  complete(): void;
}

/**
 * Keeps the private key that signs the ledgers. Which key is in force is decided by the public keys in the database
 * (`ledger_keys`).
 */
export interface SigningKeyStore {
  /**
   * The key with this public key, after completing a replacement that was committed before its process died. Undefined
   * if no key is kept.
   * @param sql where it is read, if it is kept in the store
   * @throws OperatorError if the key cannot be used, or is a different one
   */
  readInForce(publicKey: Uint8Array, sql?: Pick<Sql, "get">): Promise<SigningKey | undefined>;
  /** The first key: one that is kept already although the database does not know it, or a new one. @throws OperatorError */
  first(random: RandomSource): Promise<NewSigningKey>;
  /** A new key that will replace the one with this public key, even if that one is lost. @throws OperatorError */
  replacement(publicKey: Uint8Array, random: RandomSource, use: KeyUse): Promise<NewSigningKey>;
  /** Records what the key in force has signed. @throws OperatorError if it cannot be written */
  mark(key: SigningKey): Promise<void>;
  /** Why a start is refused, and what to do, in terms of the place where the key is kept. */
  refusal(reason: "missing" | "no_public_key"): OperatorError;
}

/**
 * Lines placed before the key once it has signed heads (RFC 7468 allows text there). An attacker who can write the
 * database, but not the kept key, cannot remove them. So forged entries cannot pass as those of a version that signed
 * less.
 */
const LEDGER_HEADS = "This key signs the head of each ledger in each commit.\n";
const NODE_HEAD = "It signs all heads together.\n";
const SEED_BYTES = 32;
/** The PKCS #8 encoding of an Ed25519 key, up to its seed (RFC 8410). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");

export function createSigningKey(random: RandomSource, use: KeyUse): SigningKey {
  const seed = new Uint8Array(SEED_BYTES);
  random(seed);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: "der", type: "pkcs8" });
  return { key, use };
}

/** The key as PEM, after its mark. */
export function formatSigningKey({ key, use }: SigningKey): string {
  const mark = { none: "", ledger_heads: LEDGER_HEADS, node_head: LEDGER_HEADS + NODE_HEAD }[use];
  return `${mark}${key.export({ format: "pem", type: "pkcs8" })}`;
}

/** Undefined if the text does not contain an Ed25519 key. */
export function parseSigningKey(content: string): SigningKey | undefined {
  try {
    const key = createPrivateKey(content);
    return key.asymmetricKeyType === "ed25519" ? { key, use: parseKeyUse(content) } : undefined;
  } catch {
    return undefined;
  }
}

export function parseKeyUse(content: string): KeyUse {
  if (content.startsWith(LEDGER_HEADS + NODE_HEAD)) return "node_head";
  return content.startsWith(LEDGER_HEADS) ? "ledger_heads" : "none";
}

/** The last 32 bytes of the key's SubjectPublicKeyInfo (RFC 8410). */
export function publicBytes(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-SEED_BYTES);
}

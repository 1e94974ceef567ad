import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import type { RandomSource } from "../../base/ids.ts";
import { makeKeyFile, readKeyFile, replaceKeyFile, syncDirectory } from "../../store/key-file.ts";

/**
 * What the key has signed, as marked in its file: nothing yet, the head of each ledger individually (schema 13 to
 * 15), or the node's head over all of them. Each covers more than the previous one.
 */
export const KEY_USES = ["none", "ledger_heads", "node_head"] as const;
export type KeyUse = (typeof KEY_USES)[number];

export interface SigningKey {
  readonly key: KeyObject;
  readonly use: KeyUse;
}

/**
 * Lines placed before the key once it has signed heads (RFC 7468 allows text there). An attacker who can write the
 * database, but not this file, cannot remove them. So forged entries cannot pass as those of a version that signed
 * less.
 */
const LEDGER_HEADS = "This key signs the head of each ledger in each commit.\n";
const NODE_HEAD = "It signs all heads together.\n";
const SEED_BYTES = 32;
/** The PKCS #8 encoding of an Ed25519 key, up to its seed (RFC 8410). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const UNREADABLE_HINT =
  "restore it from a backup; if there is none, remove the file and run `gatehouse ledger rotate-key --lost`";

/** The `ledger.key` file of a data directory, and the file of the key that will replace it. */
export class SigningKeyFile {
  readonly path: string;

  constructor(directory: string) {
    this.path = join(directory, "ledger.key");
  }

  get #nextPath(): string {
    return `${this.path}.next`;
  }

  /** Undefined if there is no file. @throws OperatorError if it cannot be used */
  read(): SigningKey | undefined {
    return readKeyFile(this.path, parseKey, UNREADABLE_HINT);
  }

  /**
   * The key in the file if it has this public key. Completes a replacement that was committed before its process
   * died.
   */
  readInForce(publicKey: Uint8Array): SigningKey | undefined {
    const isInForce = (file: SigningKey | undefined) =>
      file !== undefined && Buffer.compare(publicBytes(file.key), publicKey) === 0;
    if (isInForce(readKeyFile(this.#nextPath, parseKey, UNREADABLE_HINT))) this.takeNext();
    const file = this.read();
    return isInForce(file) ? file : undefined;
  }

  /** Creates the first key. @throws OperatorError */
  make(random: RandomSource): SigningKey {
    return makeKey(this.path, random, "none");
  }

  /** Creates the key that will replace this one. @throws OperatorError */
  makeNext(random: RandomSource, use: KeyUse): SigningKey {
    // May be left from a replacement that was not committed.
    rmSync(this.#nextPath, { force: true });
    return makeKey(this.#nextPath, random, use);
  }

  /** Replaces this key with the next one. MUST run once the database contains the next one. */
  takeNext(): void {
    renameSync(this.#nextPath, this.path);
    syncDirectory(dirname(this.path));
  }

  /** @throws OperatorError if the file cannot be written */
  mark(key: KeyObject, use: KeyUse): void {
    replaceKeyFile(this.path, contentOf({ key, use }));
  }
}

/**
 * What the key of a data directory has signed, according to its file; null if there is no file that this user can
 * read.
 */
export function readKeyUse(directory: string): KeyUse | null {
  try {
    return readKeyFile(new SigningKeyFile(directory).path, useOf, UNREADABLE_HINT) ?? null;
  } catch (error) {
    if (error instanceof OperatorError) return null;
    throw error;
  }
}

function makeKey(path: string, random: RandomSource, use: KeyUse): SigningKey {
  const seed = new Uint8Array(SEED_BYTES);
  random(seed);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: "der", type: "pkcs8" });
  makeKeyFile(path, contentOf({ key, use }));
  return { key, use };
}

function contentOf({ key, use }: SigningKey): string {
  const mark = { none: "", ledger_heads: LEDGER_HEADS, node_head: LEDGER_HEADS + NODE_HEAD }[use];
  return `${mark}${key.export({ format: "pem", type: "pkcs8" })}`;
}

function parseKey(content: string): SigningKey | undefined {
  try {
    const key = createPrivateKey(content);
    return key.asymmetricKeyType === "ed25519" ? { key, use: useOf(content) } : undefined;
  } catch {
    return undefined;
  }
}

function useOf(content: string): KeyUse {
  if (content.startsWith(LEDGER_HEADS + NODE_HEAD)) return "node_head";
  return content.startsWith(LEDGER_HEADS) ? "ledger_heads" : "none";
}

/** The last 32 bytes of the key's SubjectPublicKeyInfo (RFC 8410). */
export function publicBytes(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-SEED_BYTES);
}

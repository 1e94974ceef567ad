import { renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import type { RandomSource } from "../../base/ids.ts";
import { makeKeyFile, readKeyFile, replaceKeyFile, syncDirectory } from "../../store/key-file.ts";
import {
  createSigningKey,
  formatSigningKey,
  type KeyUse,
  type NewSigningKey,
  parseKeyUse,
  parseSigningKey,
  publicBytes,
  type SigningKey,
  type SigningKeyStore,
} from "./signing-key.ts";

const UNREADABLE_HINT =
  "restore it from a backup; if there is none, remove the file and run `gatehouse ledger rotate-key --lost`";
const CHANGED_HINT =
  "keep a copy of this data directory, find out what was changed (gatehouse ledger verify --data DIR --key KEY, with a key that you kept), and restore the database and ledger.key from the same backup";

/**
 * Keeps the signing key in the file `ledger.key` of a data directory (mode 0600). Its replacement is written to
 * `ledger.key.next` before the transaction that puts it in force, and renamed after it.
 */
export class SigningKeyFile implements SigningKeyStore {
  readonly #path: string;

  constructor(directory: string) {
    this.#path = join(directory, "ledger.key");
  }

  get #nextPath(): string {
    return `${this.#path}.next`;
  }

  async readInForce(publicKey: Uint8Array): Promise<SigningKey | undefined> {
    this.#completeReplacement(publicKey);
    const file = readFile(this.#path);
    // Anyone who can write the database can add a key of their own. So only a missing file may mean that the key is
    // lost.
    if (!file || hasPublicKey(file, publicKey)) return file;
    throw new OperatorError(
      `the key in ${this.#path} is not the one in force according to the database: somebody has changed the database's keys, or one of the two files is from another data directory`,
      CHANGED_HINT,
    );
  }

  async first(random: RandomSource): Promise<NewSigningKey> {
    // A file may be left from a start that died before its transaction.
    const key = readFile(this.#path) ?? makeFile(this.#path, createSigningKey(random, "none"));
    return { ...key, write: async () => true, complete() {} };
  }

  async replacement(publicKey: Uint8Array, random: RandomSource, use: KeyUse): Promise<NewSigningKey> {
    // If an earlier replacement was committed but its file could not be renamed, that file has the only copy of the
    // current key.
    this.#completeReplacement(publicKey);
    // May be left from a replacement that was not committed.
    rmSync(this.#nextPath, { force: true });
    const key = makeFile(this.#nextPath, createSigningKey(random, use));
    return { ...key, write: async () => true, complete: () => this.#takeNext() };
  }

  async mark(key: SigningKey): Promise<void> {
    replaceKeyFile(this.#path, formatSigningKey(key));
  }

  refusal(reason: "missing" | "no_public_key"): OperatorError {
    if (reason === "missing") {
      return new OperatorError(
        `the key file ${this.#path} is missing`,
        "restore it from a backup; if there is none, run `gatehouse ledger rotate-key --lost`",
      );
    }
    return new OperatorError(
      "the database has signed heads of ledgers but no key that signed them: the rows of `ledger_keys` were removed",
      CHANGED_HINT,
    );
  }

  #completeReplacement(publicKey: Uint8Array): void {
    const next = readFile(this.#nextPath);
    if (next && hasPublicKey(next, publicKey)) this.#takeNext();
  }

  #takeNext(): void {
    renameSync(this.#nextPath, this.#path);
    syncDirectory(dirname(this.#path));
  }
}

/**
 * Whether a data directory contains the current key, which may still be in a replacement file that was not renamed yet.
 * Read-only.
 * @throws OperatorError if a file cannot be used
 */
export function hasKey(directory: string, publicKey: Uint8Array): "fits" | "differs" | "missing" {
  // A replacement becomes the key by being renamed. In the other order, one that is renamed in between would be missed.
  const names = ["ledger.key.next", "ledger.key"];
  const keys = names.flatMap((name) => readFile(join(directory, name)) ?? []);
  if (keys.some((key) => hasPublicKey(key, publicKey))) return "fits";
  return keys.length > 0 ? "differs" : "missing";
}

/**
 * What the key of a data directory has signed, according to its file; null if there is no file that this user can
 * read.
 */
export function readKeyUse(directory: string): KeyUse | null {
  try {
    return readKeyFile(join(directory, "ledger.key"), parseKeyUse, UNREADABLE_HINT) ?? null;
  } catch (error) {
    if (error instanceof OperatorError) return null;
    throw error;
  }
}

/** Undefined if there is no file. @throws OperatorError if it cannot be used */
function readFile(path: string): SigningKey | undefined {
  return readKeyFile(path, parseSigningKey, UNREADABLE_HINT);
}

function makeFile(path: string, key: SigningKey): SigningKey {
  makeKeyFile(path, formatSigningKey(key));
  return key;
}

function hasPublicKey({ key }: SigningKey, publicKey: Uint8Array): boolean {
  return Buffer.compare(publicBytes(key), publicKey) === 0;
}

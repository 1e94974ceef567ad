import { createHash, createSecretKey, type KeyObject } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../base/errors.ts";
import { type RandomSource, systemRandom } from "../base/ids.ts";
import { makeKeyFile, readKeyFile, replaceKeyFile } from "./key-file.ts";

/** A key that encrypts. Its bytes stay inside the KeyObject, which never prints them. */
export interface SealingKey {
  readonly secret: KeyObject;
  /** Identifies the key without revealing anything about it. 8 bytes. */
  readonly id: Uint8Array;
}

/** The key that encrypts secrets at rest and seals rows. */
export interface SecretKey extends SealingKey {
  /**
   * Where the key is kept, for the warning in a backup: without the key, a copy of the database cannot decrypt any
   * secret.
   */
  readonly from: "setting" | "file";
  /** Whether rows of this data directory have been sealed with a key. */
  readonly hasSealed: boolean;
  /**
   * Records that rows have been sealed. MUST be called once they are on disk. @throws OperatorError if it cannot be
   * written
   */
  markSealed(): void;
}

export interface KeyPlace {
  /** The setting `master_key`. If set, no key file is read or created. */
  readonly masterKey: string | undefined;
  readonly dataDir: string;
  readonly random?: RandomSource;
}

const KEY_BYTES = 32;
export const KEY_ID_BYTES = 8;
const KEY_FILE = "secrets.key";
/**
 * Precedes the key in its file once rows are sealed. Anyone who can write the database, but cannot read this file,
 * cannot remove the mark, so forged rows cannot pass as rows from a version without seals.
 */
const MARK = "This key has sealed rows of the database.\n";
/** Replaces the mark if the key is a setting, which this program cannot write. */
const MARK_FILE = "master_key.sealed";
const CREATE_HINT = "create one with `openssl rand -base64 32`";
const ID_DOMAIN = "gatehouse secret key id v1\n";

/**
 * The configured key, or else the key in `secrets.key` in the data directory, which is created on first use (mode
 * 0600). The directory MUST exist and be locked by this process.
 *
 * @throws OperatorError if the key or its file cannot be used
 */
export function openSecretKey({ masterKey, dataDir, random = systemRandom }: KeyPlace): SecretKey {
  if (masterKey !== undefined) return settingKey(decodeMasterKey(masterKey), join(dataDir, MARK_FILE));
  const path = join(dataDir, KEY_FILE);
  return fileKey(readKey(path) ?? makeKey(path, random), path);
}

/** The key of a store that several nodes share, which therefore cannot be in a file. @throws OperatorError */
export function requireMasterKey(masterKey: string | undefined): SealingKey {
  if (masterKey !== undefined) return secretKey(decodeMasterKey(masterKey));
  throw new OperatorError(
    "the setting master_key is missing: nodes that share a store need the same one",
    `set GATEHOUSE_MASTER_KEY to the same value on all nodes; ${CREATE_HINT}`,
    2,
  );
}

/** @throws OperatorError */
function decodeMasterKey(text: string): Uint8Array {
  const bytes = decodeKey(text);
  if (bytes) return bytes;
  throw new OperatorError("master_key is not 32 bytes in base64, base64url or hex", CREATE_HINT, 2);
}

/** The key if one exists. Creates no file. @throws OperatorError */
export function findSecretKey(place: KeyPlace): SecretKey | undefined {
  const exists = place.masterKey !== undefined || existsSync(join(place.dataDir, KEY_FILE));
  return exists ? openSecretKey(place) : undefined;
}

/**
 * Decodes 32 bytes from 64 hexadecimal digits, or from 43 base64 or base64url characters with or without padding.
 * Undefined for anything else.
 */
function decodeKey(text: string): Uint8Array | undefined {
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return Buffer.from(text, "hex");
  // The last character carries four bits, so its two low bits are zero.
  const base64 = /^(?:[A-Za-z0-9+/]{42}|[A-Za-z0-9_-]{42})[AEIMQUYcgkosw048]=?$/;
  return base64.test(text) ? Buffer.from(text, "base64") : undefined;
}

interface KeyFile {
  readonly bytes: Uint8Array;
  readonly hasSealed: boolean;
}

function fileKey({ bytes, hasSealed }: KeyFile, path: string): SecretKey {
  const { secret, id } = secretKey(bytes);
  let isMarked = hasSealed;
  return {
    ...{ secret, id, from: "file" },
    get hasSealed() {
      return isMarked;
    },
    markSealed() {
      if (isMarked) return;
      replaceKeyFile(path, `${MARK}${secret.export().toString("base64")}\n`);
      isMarked = true;
    },
  };
}

function settingKey(bytes: Uint8Array, markPath: string): SecretKey {
  const { secret, id } = secretKey(bytes);
  return {
    ...{ secret, id, from: "setting" },
    get hasSealed() {
      return existsSync(markPath);
    },
    markSealed() {
      if (existsSync(markPath)) return;
      try {
        writeFileSync(markPath, "", { mode: 0o600, flush: true });
      } catch (error) {
        throw new OperatorError(
          `the file ${markPath} cannot be written (${error instanceof Error ? error.message : "unknown"})`,
          "make the data directory writable for this user",
        );
      }
    },
  };
}

function secretKey(bytes: Uint8Array): SealingKey {
  const id = createHash("sha256").update(ID_DOMAIN).update(bytes).digest().subarray(0, KEY_ID_BYTES);
  const secret = createSecretKey(bytes);
  bytes.fill(0);
  return { secret, id };
}

function parseKeyFile(content: string): KeyFile | undefined {
  const hasSealed = content.startsWith(MARK);
  const bytes = decodeKey((hasSealed ? content.slice(MARK.length) : content).trim());
  return bytes && { bytes, hasSealed };
}

function readKey(path: string): KeyFile | undefined {
  return readKeyFile(
    path,
    parseKeyFile,
    "restore it from a backup; if there is none, remove the file, run `gatehouse reseal`, and add the connectors again",
  );
}

function makeKey(path: string, random: RandomSource): KeyFile {
  const bytes = new Uint8Array(KEY_BYTES);
  random(bytes);
  makeKeyFile(path, `${Buffer.from(bytes).toString("base64")}\n`);
  return { bytes, hasSealed: false };
}

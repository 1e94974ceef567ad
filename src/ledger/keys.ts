import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import { makeKeyFile, readKeyFile, replaceKeyFile, syncDirectory } from "../store/key-file.ts";
import { keysDigest } from "./proof/head.ts";
import { formatVerifierKey, keyIdOf, type NoteSignature } from "./proof/note.ts";
import { sha256 } from "./tree-hash.ts";

/**
 * The key that this node's ledgers are signed with. One Ed25519 key for all workspaces; each has a name of its own for it,
 * its ledger's origin `gatehouse/<instance>/<workspace>`, so that no checkpoint of one passes for another's.
 */
export interface LedgerKeys {
  /** Tells this node's ledgers from those of all others; made at the first start. */
  readonly instance: string;
  originOf(workspace: string): string;
  /** C2SP's verifier key of a workspace's ledger, and those that were in force before it, the oldest first. */
  verifierKeys(workspace: string): { readonly current: string; readonly former: readonly string[] };
  sign(workspace: string, text: string): NoteSignature;
  /** As the transaction that is open now will have it: while it changes the key, both keys sign. */
  signInTransaction(workspace: string, text: string): readonly NoteSignature[];
  /** `keysDigest` of all keys, as the transaction that is open now will have them. */
  digestInTransaction(): Uint8Array;
  /** `keysDigest` of the keys that were stored when these were opened. */
  readonly storedDigest: Uint8Array;
  /** The 32 bytes of the public key that stored heads are signed with: of the lost one while it is replaced. */
  readonly headKey: Uint8Array;
  /** Whether the key's file says that heads were signed with it. */
  readonly hasSigned: boolean;
  /** Has the file say so. MUST come once all heads are on disk. @throws OperatorError when the file cannot be written */
  markSigned(): void;
  /** Whether the key in force is lost, and this one takes its place. */
  readonly isReplacing: boolean;
  /** Puts this key in the place of the lost one. The transaction MUST record it in each ledger. */
  replaceLost(tx: Tx): Promise<void>;
  /** Ed25519 over bytes that are no note; 64 bytes. */
  signBytes(bytes: Uint8Array): Uint8Array;
  /**
   * Puts a new key in the place of this one. `attest` writes what makes the new key trusted by those who know the old one, in
   * the transaction of the change; both keys sign there.
   */
  rotate(attest: (tx: Tx, both: KeyChange) => Promise<void>): Promise<void>;
}

export interface KeyChange {
  /** Verifier keys of a workspace's ledger: that of before, and that of now on. */
  verifierKeys(workspace: string): { readonly from: string; readonly to: string };
  signBoth(workspace: string, text: string): readonly NoteSignature[];
}

export interface LedgerKeysParts {
  readonly db: Db;
  /** The data directory. */
  readonly directory: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** When the key in force is lost, a new one is made. Nothing of the old one vouches for it. Default: false. */
  readonly replaceLost?: boolean;
}

/** What the file of a key holds. */
interface KeyFile {
  readonly key: KeyObject;
  readonly hasSigned: boolean;
}

const KEY_FILE = "ledger.key";
/**
 * Stands before the key once it has signed heads (RFC 7468 allows text there). Whoever can write the database and not read
 * this file cannot take it away, and so cannot pass forged entries for those of a version that signed no heads.
 */
const MARK = "This key signs the head of each ledger in each commit.\n";
const INSTANCE_BYTES = 8;
const SEED_BYTES = 32;
/** PKCS #8 of an Ed25519 key, up to its seed (RFC 8410). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const RESTORE_HINT =
  "put the backup of it back; where there is none, remove the file, and run `gatehouse ledger rotate-key --lost`";

/**
 * The key of `ledger.key` in the data directory, which the first start makes (mode 0600).
 * @throws OperatorError where the file is missing or holds another key than the one in force, and `replaceLost` is not set
 */
export async function openLedgerKeys(parts: LedgerKeysParts): Promise<LedgerKeys> {
  const { db, directory, random } = parts;
  const instance = await openInstance(db, random);
  const path = join(directory, KEY_FILE);
  const known = await storedKeys(db);
  const inForce = known.at(-1);
  if (!inForce) {
    const file = readKeyFile(path, parseKey, RESTORE_HINT) ?? makeKey(path, random);
    const publicKey = publicBytes(file.key);
    await db.tx((tx) => insertKey(tx, publicKey, parts.clock.now()));
    return new NodeKeys(parts, { instance, path, file, former: [], lost: null });
  }
  const file = keyInForce(path, inForce);
  if (file) return new NodeKeys(parts, { instance, path, file, former: known.slice(0, -1), lost: null });
  if (!parts.replaceLost) {
    throw new OperatorError(
      `the key file ${path} is not there, or is not the key that the ledgers are signed with`,
      "put the backup of it back; where there is none, run `gatehouse ledger rotate-key --lost`",
    );
  }
  const made = readKeyFile(path, parseKey, RESTORE_HINT) ?? makeKey(path, random);
  return new NodeKeys(parts, { instance, path, file: made, former: known, lost: inForce });
}

interface NodeKeysState {
  readonly instance: string;
  readonly path: string;
  readonly file: KeyFile;
  readonly former: readonly Uint8Array[];
  /** The key in force that is lost, and that this one is to replace. */
  readonly lost: Uint8Array | null;
}

class NodeKeys implements LedgerKeys {
  readonly instance: string;
  readonly storedDigest: Uint8Array;
  readonly #parts: LedgerKeysParts;
  readonly #path: string;
  readonly #former: Uint8Array[];
  #key: KeyObject;
  #public: Uint8Array;
  /** The key that the open transaction puts in force. */
  #next: { readonly key: KeyObject; readonly publicKey: Uint8Array } | null = null;
  #lost: Uint8Array | null;
  #hasSigned: boolean;
  #digest: Uint8Array | null = null;
  /** Of the present key, by the name that it signs under: every commit signs, and would hash it again. */
  readonly #keyIds = new Map<string, Uint8Array>();
  #rotating: Promise<void> = Promise.resolve();

  constructor(parts: LedgerKeysParts, { instance, path, file, former, lost }: NodeKeysState) {
    this.#parts = parts;
    this.instance = instance;
    this.#path = path;
    this.#key = file.key;
    this.#public = publicBytes(file.key);
    this.#former = [...former];
    this.#lost = lost;
    this.#hasSigned = file.hasSigned;
    this.storedDigest = keysDigest(sha256, lost ? former : [...former, this.#public]);
  }

  originOf(workspace: string): string {
    return `gatehouse/${this.instance}/${workspace}`;
  }

  verifierKeys(workspace: string) {
    const format = (key: Uint8Array) => formatVerifierKey(sha256, this.originOf(workspace), key);
    return { current: format(this.#public), former: this.#former.map(format) };
  }

  sign(workspace: string, text: string): NoteSignature {
    const name = this.originOf(workspace);
    const keyId = this.#keyIds.get(name) ?? keyIdOf(sha256, name, this.#public);
    this.#keyIds.set(name, keyId);
    return { name, keyId, signature: sign(null, Buffer.from(text), this.#key) };
  }

  signInTransaction(workspace: string, text: string): readonly NoteSignature[] {
    const next = this.#next;
    const signature = this.sign(workspace, text);
    return next
      ? [signature, signWith(next.key, next.publicKey, this.originOf(workspace), text)]
      : [signature];
  }

  digestInTransaction(): Uint8Array {
    if (this.#next) return keysDigest(sha256, [...this.#former, this.#public, this.#next.publicKey]);
    this.#digest ??= keysDigest(sha256, [...this.#former, this.#public]);
    return this.#digest;
  }

  get headKey(): Uint8Array {
    return this.#lost ?? this.#public;
  }

  get hasSigned(): boolean {
    return this.#hasSigned;
  }

  markSigned(): void {
    if (this.#hasSigned) return;
    replaceKeyFile(this.#path, contentOf({ key: this.#key, hasSigned: true }));
    this.#hasSigned = true;
  }

  get isReplacing(): boolean {
    return this.#lost !== null;
  }

  async replaceLost(tx: Tx): Promise<void> {
    await replaceKey(tx, this.#public, this.#parts.clock.now());
    tx.onCommit(() => {
      this.#lost = null;
    });
  }

  signBytes(bytes: Uint8Array): Uint8Array {
    return sign(null, bytes, this.#key);
  }

  /** One after the other: each takes the key that the one before has put in force. */
  rotate(attest: (tx: Tx, both: KeyChange) => Promise<void>): Promise<void> {
    const done = this.#rotating.then(() => this.#rotate(attest));
    this.#rotating = done.catch(() => {});
    return done;
  }

  async #rotate(attest: (tx: Tx, both: KeyChange) => Promise<void>): Promise<void> {
    const { db, random, clock } = this.#parts;
    const next = nextPath(this.#path);
    // The new key of a rotation that is on disk, where its file could not be given its name yet: nowhere else is it kept.
    keyInForce(this.#path, this.#public);
    // Left by a rotation that failed.
    rmSync(next, { force: true });
    const { key } = makeKey(next, random, this.#hasSigned);
    const publicKey = publicBytes(key);
    const [oldKey, oldPublic] = [this.#key, this.#public];
    const change: KeyChange = {
      verifierKeys: (workspace) => ({
        from: formatVerifierKey(sha256, this.originOf(workspace), oldPublic),
        to: formatVerifierKey(sha256, this.originOf(workspace), publicKey),
      }),
      signBoth: (workspace, text) => [
        signWith(oldKey, oldPublic, this.originOf(workspace), text),
        signWith(key, publicKey, this.originOf(workspace), text),
      ],
    };
    await db.tx(async (tx) => {
      tx.onRollback(() => {
        this.#next = null;
      });
      this.#next = { key, publicKey };
      await attest(tx, change);
      await replaceKey(tx, publicKey, clock.now());
      tx.onCommit(() => {
        this.#next = null;
        this.#former.push(oldPublic);
        this.#keyIds.clear();
        this.#digest = null;
        this.#key = key;
        this.#public = publicKey;
      });
    });
    moveKey(next, this.#path);
  }
}

/** Also where a process died after a rotation was on disk, and before the new key had its name. */
function keyInForce(path: string, publicKey: Uint8Array): KeyFile | undefined {
  const isInForce = (file: KeyFile | undefined) =>
    file !== undefined && Buffer.compare(publicBytes(file.key), publicKey) === 0;
  const next = readKeyFile(nextPath(path), parseKey, RESTORE_HINT);
  if (isInForce(next)) moveKey(nextPath(path), path);
  const file = readKeyFile(path, parseKey, RESTORE_HINT);
  return isInForce(file) ? file : undefined;
}

function nextPath(path: string): string {
  return `${path}.next`;
}

function moveKey(from: string, to: string): void {
  renameSync(from, to);
  syncDirectory(dirname(to));
}

function makeKey(path: string, random: RandomSource, hasSigned = false): KeyFile {
  const seed = new Uint8Array(SEED_BYTES);
  random(seed);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: "der", type: "pkcs8" });
  makeKeyFile(path, contentOf({ key, hasSigned }));
  return { key, hasSigned };
}

function contentOf({ key, hasSigned }: KeyFile): string {
  return `${hasSigned ? MARK : ""}${key.export({ format: "pem", type: "pkcs8" })}`;
}

function parseKey(content: string): KeyFile | undefined {
  try {
    const key = createPrivateKey(content);
    return key.asymmetricKeyType === "ed25519" ? { key, hasSigned: content.startsWith(MARK) } : undefined;
  } catch {
    return undefined;
  }
}

/** The last 32 bytes of its SubjectPublicKeyInfo (RFC 8410). */
function publicBytes(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-SEED_BYTES);
}

function signWith(key: KeyObject, publicKey: Uint8Array, name: string, text: string): NoteSignature {
  return {
    name,
    keyId: keyIdOf(sha256, name, publicKey),
    signature: sign(null, Buffer.from(text), key),
  };
}

async function storedKeys(sql: Pick<Sql, "all">): Promise<Uint8Array[]> {
  const rows = await sql.all<{ public_key: Uint8Array }>("SELECT public_key FROM ledger_keys ORDER BY id");
  return rows.map(({ public_key }) => public_key);
}

async function insertKey(tx: Tx, publicKey: Uint8Array, now: number): Promise<void> {
  await tx.run("INSERT INTO ledger_keys (public_key, created_at) VALUES ($1, $2)", [publicKey, now]);
}

async function replaceKey(tx: Tx, publicKey: Uint8Array, now: number): Promise<void> {
  await tx.run("UPDATE ledger_keys SET retired_at = $1 WHERE retired_at IS NULL", [now]);
  await insertKey(tx, publicKey, now);
}

async function openInstance(db: Db, random: RandomSource): Promise<string> {
  const known = await db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'instance'");
  if (known) return known.value;
  const bytes = new Uint8Array(INSTANCE_BYTES);
  random(bytes);
  await db.run("INSERT INTO meta (key, value) VALUES ('instance', $1)", [bytes.toHex()]);
  return bytes.toHex();
}

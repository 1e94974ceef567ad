import { type KeyObject, sign } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import { keysDigest } from "./proof/node-head.ts";
import { formatVerifierKey, keyIdOf, type NoteSignature } from "./proof/note.ts";
import { type KeyUse, publicBytes, type SigningKey, SigningKeyFile } from "./signing-key-file.ts";
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
  /** The name of the node's head: no ledger has it. */
  readonly nodeOrigin: string;
  sign(workspace: string, text: string): NoteSignature;
  /** As the transaction that is open now will have it: while it changes the key, both keys sign. */
  signNodeHead(text: string): readonly NoteSignature[];
  /** `keysDigest` of all keys, as the transaction that is open now will have them. */
  digestInTransaction(): Uint8Array;
  /** `keysDigest` of the keys that were stored when these were opened. */
  readonly storedDigest: Uint8Array;
  /** The 32 bytes of the public key that stored heads are signed with: of the lost one while it is replaced. */
  readonly headKey: Uint8Array;
  /** What the key's file says that it has signed. */
  readonly use: KeyUse;
  /**
   * Records in the file that the key signs the node's head, and gives the file of a key that replaced a lost one its name. MUST
   * come once the node's head is on disk. @throws OperatorError when the file cannot be written
   */
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

const INSTANCE_BYTES = 8;

/**
 * The key of `ledger.key` in the data directory, which the first start makes (mode 0600).
 * @throws OperatorError when the file is missing and `replaceLost` is not set, or when it is not the key in force
 */
export async function openLedgerKeys(parts: LedgerKeysParts): Promise<LedgerKeys> {
  const { db, directory, random } = parts;
  const instance = await openInstance(db, random);
  const file = new SigningKeyFile(directory);
  const known = await storedKeys(db);
  const inForce = known.at(-1);
  if (!inForce) {
    if (await hasHeads(db)) {
      throw new OperatorError(
        "the database has signed heads of ledgers and no key that signed them: the rows of `ledger_keys` were removed",
        CHANGED_HINT,
      );
    }
    const signing = file.read() ?? file.make(random);
    await db.tx((tx) => insertKey(tx, publicBytes(signing.key), parts.clock.now()));
    return new NodeKeys(parts, { instance, file, signing, former: [], lost: null });
  }
  const signing = file.readInForce(inForce);
  if (signing)
    return new NodeKeys(parts, { instance, file, signing, former: known.slice(0, -1), lost: null });
  // Whoever can write the database can put a key of their own there. Only a missing file can mean that the key is lost.
  if (file.read()) {
    throw new OperatorError(
      `the key in ${file.path} is not the one that the database says is in force: somebody has changed the database's keys, or one of the two files is from another data directory`,
      CHANGED_HINT,
    );
  }
  if (parts.replaceLost) {
    const next = file.makeNext(random, "none");
    return new NodeKeys(parts, { instance, file, signing: next, former: known, lost: inForce });
  }
  throw new OperatorError(
    `the key file ${file.path} is not there`,
    "put the backup of it back; if there is none, run `gatehouse ledger rotate-key --lost`",
  );
}

const CHANGED_HINT =
  "keep a copy of this data directory, see what was changed (gatehouse ledger verify --data DIR --key KEY, with a key that you kept), and put the database and ledger.key back from the same backup";

interface NodeKeysState {
  readonly instance: string;
  readonly file: SigningKeyFile;
  readonly signing: SigningKey;
  readonly former: readonly Uint8Array[];
  /** The key in force that is lost, and that this one is to replace. */
  readonly lost: Uint8Array | null;
}

class NodeKeys implements LedgerKeys {
  readonly instance: string;
  readonly storedDigest: Uint8Array;
  readonly #parts: LedgerKeysParts;
  readonly #file: SigningKeyFile;
  readonly #former: Uint8Array[];
  #key: KeyObject;
  #public: Uint8Array;
  /** The key that the open transaction puts in force. */
  #next: { readonly key: KeyObject; readonly publicKey: Uint8Array } | null = null;
  #lost: Uint8Array | null;
  /** Whether the key is in the file of the next one still. */
  #isUnnamed: boolean;
  #use: KeyUse;
  #digest: Uint8Array | null = null;
  /** Of the present key, by the name that it signs under: every commit signs, and would hash it again. */
  readonly #keyIds = new Map<string, Uint8Array>();
  #rotating: Promise<void> = Promise.resolve();

  constructor(parts: LedgerKeysParts, { instance, file, signing, former, lost }: NodeKeysState) {
    this.#parts = parts;
    this.instance = instance;
    this.#file = file;
    this.#key = signing.key;
    this.#public = publicBytes(signing.key);
    this.#former = [...former];
    this.#lost = lost;
    this.#isUnnamed = lost !== null;
    this.#use = signing.use;
    this.storedDigest = keysDigest(sha256, lost ? former : [...former, this.#public]);
  }

  get nodeOrigin(): string {
    return `gatehouse/${this.instance}`;
  }

  originOf(workspace: string): string {
    return `gatehouse/${this.instance}/${workspace}`;
  }

  verifierKeys(workspace: string) {
    const format = (key: Uint8Array) => formatVerifierKey(sha256, this.originOf(workspace), key);
    return { current: format(this.#public), former: this.#former.map(format) };
  }

  sign(workspace: string, text: string): NoteSignature {
    return this.#signAs(this.originOf(workspace), text);
  }

  signNodeHead(text: string): readonly NoteSignature[] {
    const next = this.#next;
    const signature = this.#signAs(this.nodeOrigin, text);
    return next ? [signature, signWith(next.key, next.publicKey, this.nodeOrigin, text)] : [signature];
  }

  digestInTransaction(): Uint8Array {
    if (this.#next) return keysDigest(sha256, [...this.#former, this.#public, this.#next.publicKey]);
    this.#digest ??= keysDigest(sha256, [...this.#former, this.#public]);
    return this.#digest;
  }

  get headKey(): Uint8Array {
    return this.#lost ?? this.#public;
  }

  get use(): KeyUse {
    return this.#use;
  }

  markSigned(): void {
    if (this.#isUnnamed) this.#file.takeNext();
    this.#isUnnamed = false;
    if (this.#use === "node_head") return;
    this.#file.mark(this.#key, "node_head");
    this.#use = "node_head";
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

  #signAs(name: string, text: string): NoteSignature {
    const keyId = this.#keyIds.get(name) ?? keyIdOf(sha256, name, this.#public);
    this.#keyIds.set(name, keyId);
    return { name, keyId, signature: sign(null, Buffer.from(text), this.#key) };
  }

  /** One after the other: each takes the key that the one before has put in force. */
  rotate(attest: (tx: Tx, both: KeyChange) => Promise<void>): Promise<void> {
    const done = this.#rotating.then(() => this.#rotate(attest));
    this.#rotating = done.catch(() => {});
    return done;
  }

  async #rotate(attest: (tx: Tx, both: KeyChange) => Promise<void>): Promise<void> {
    const { db, random, clock } = this.#parts;
    // The new key of a rotation that is on disk, and whose file could not be given its name yet: it is kept nowhere else.
    this.#file.readInForce(this.#public);
    const { key } = this.#file.makeNext(random, this.#use);
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
    this.#file.takeNext();
  }
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

async function hasHeads(sql: Pick<Sql, "get">): Promise<boolean> {
  return (await sql.get("SELECT 1 FROM ledger_heads LIMIT 1")) !== undefined;
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

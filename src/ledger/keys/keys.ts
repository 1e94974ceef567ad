import { type KeyObject, sign } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { RandomSource } from "../../base/ids.ts";
import { type Db, type Sql, StoreUnavailable, type Tx } from "../../store/db.ts";
import type { HeadStore } from "../heads/heads.ts";
import { isEqual } from "../proof/hash.ts";
import { keysDigest } from "../proof/node-head.ts";
import { formatVerifierKey, keyIdOf, type Note, type NoteSignature } from "../proof/note.ts";
import { sha256 } from "../tree-hash.ts";
import { isSignedBy } from "../verify/tools.ts";
import {
  type KeyUse,
  type NewSigningKey,
  publicBytes,
  type SigningKey,
  type SigningKeyStore,
} from "./signing-key.ts";
import { insertKey, replaceKey, storedKeys } from "./stored-keys.ts";
import { firstUnproven } from "./vouching.ts";

/**
 * The key that signs this node's ledgers: one Ed25519 key for all workspaces. It signs each ledger under a separate
 * name, the ledger's origin `gatehouse/<instance>/<workspace>`, so no ledger's checkpoint can pass for another's.
 */
export interface LedgerKeys {
  /** Distinguishes this node's ledgers from all others. Created at the first start. */
  readonly instance: string;
  originOf(workspace: string): string;
  /** C2SP verifier keys of a workspace's ledger: the current one, and its predecessors, oldest first. */
  verifierKeys(workspace: string): { readonly current: string; readonly former: readonly string[] };
  /** The name under which the node's head is signed. No ledger has this name. */
  readonly nodeOrigin: string;
  sign(workspace: string, text: string): NoteSignature;
  /** Signs with the keys that the open transaction will have: if it changes the key, with both. See `TxId`. */
  signHead(origin: string, text: string, tx?: TxId): readonly NoteSignature[];
  /** Whether the key that signs the stored heads has signed the note under this name. */
  hasSigned(origin: string, note: Note): boolean;
  /** `keysDigest` of all keys as the open transaction will have them. */
  digestInTransaction(tx?: TxId): Uint8Array;
  /**
   * Adopts the keys with which other nodes have replaced the key since, if their chain is unbroken: each of them was
   * vouched for by its predecessor, in a checkpoint of this workspace that both have signed.
   * @throws StoreUnavailable if it is broken
   */
  reload(sql: Pick<Sql, "all" | "get">, workspaceId: number): Promise<void>;
  /**
   * Whether this is `keysDigest` of the keys in force; while a lost key is being replaced, also of the former ones. Not of
   * those that an open transaction will have: if another transaction reads them, the change was committed, and it must
   * `reload` them, or it would sign with the former key.
   */
  isDigest(digest: Uint8Array): boolean;
  /** `keysDigest` of the keys that were stored at the start. */
  readonly storedDigest: Uint8Array;
  /** The 32-byte public key that signed the stored heads: the lost one while it is being replaced. */
  readonly headKey: Uint8Array;
  /** What the key has signed, according to its mark. */
  readonly use: KeyUse;
  /**
   * Marks the key as one that signs the node's head, and completes the replacement of a lost key. MUST run once the
   * node's head is on disk. @throws OperatorError if the mark cannot be written
   */
  markSigned(): Promise<void>;
  /** Whether the key in force is lost and this one replaces it. */
  readonly isReplacing: boolean;
  /** Replaces the lost key with this one. The transaction MUST record it in each ledger. */
  replaceLost(tx: Tx): Promise<void>;
  /** Ed25519 signature of bytes other than a note; 64 bytes. */
  signBytes(bytes: Uint8Array): Uint8Array;
  /**
   * Replaces the key with a new one. `attest` runs in the transaction of the change and writes the evidence that lets
   * those who trust the old key trust the new one, to the ledgers of all `workspaces`. Both keys sign there.
   */
  rotate(
    workspaces: () => readonly number[],
    attest: (tx: Tx, both: KeyChange) => Promise<void>,
  ): Promise<void>;
}

/**
 * Identifies a transaction: its `lockedTails`. If several transactions are open at the same time, only one of them changes
 * the key. Not needed in SQLite, which has one at a time.
 */
export type TxId = object;

export interface KeyChange {
  /** Verifier keys of a workspace's ledger before and after the change. */
  verifierKeys(workspace: string): { readonly from: string; readonly to: string };
  signBoth(workspace: string, text: string): readonly NoteSignature[];
}

export interface LedgerKeysParts {
  readonly db: Db;
  readonly keyStore: SigningKeyStore;
  readonly headStore: Pick<HeadStore, "isSigned">;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** If the key in force is lost, creates a new one, for which no older key vouches. Default: false. */
  readonly replaceLost?: boolean;
}

const INSTANCE_BYTES = 8;
const MOST_ROTATIONS = 3;
const EMPTY = new Uint8Array(0);

/**
 * Opens the key that is in force. The first start creates it.
 * @throws OperatorError if the key is missing and `replaceLost` is not set, or if another one is kept in its place
 */
export async function openLedgerKeys(parts: LedgerKeysParts): Promise<LedgerKeys> {
  const { db, keyStore, random } = parts;
  const instance = await openInstance(db, random);
  const known = await knownKeys(parts);
  const inForce = known.at(-1);
  if (!inForce) throw keyStore.refusal("no_public_key");
  const signing = await keyStore.readInForce(inForce);
  if (signing) return new NodeKeys(parts, { instance, signing, former: known.slice(0, -1), lost: null });
  if (!parts.replaceLost) throw keyStore.refusal("missing");
  const replacement = await keyStore.replacement(inForce, random, "none");
  const lost = { publicKey: inForce, replacement };
  return new NodeKeys(parts, { instance, signing: replacement, former: known, lost });
}

/** The public keys that the database knows, oldest first. The first start adds the first one. */
async function knownKeys(parts: LedgerKeysParts): Promise<readonly Uint8Array[]> {
  const { db, keyStore, headStore, clock, random } = parts;
  // Heads are read first: another node that starts now adds its key before it signs.
  const isSigned = await headStore.isSigned(db);
  const known = await storedKeys(db);
  if (known.length > 0 || isSigned) return known;
  const first = await keyStore.first(random);
  await db.tx(null, async (tx) => {
    if (await first.write(tx)) insertKey(tx, publicBytes(first.key), clock.now());
  });
  first.complete();
  return storedKeys(db);
}

interface NodeKeysState {
  readonly instance: string;
  readonly signing: SigningKey;
  readonly former: readonly Uint8Array[];
  /** The key in force, if it is lost, and the key that will replace it. */
  readonly lost: { readonly publicKey: Uint8Array; readonly replacement: NewSigningKey } | null;
}

class NodeKeys implements LedgerKeys {
  readonly instance: string;
  readonly storedDigest: Uint8Array;
  readonly #parts: LedgerKeysParts;
  #former: readonly Uint8Array[];
  #key: KeyObject;
  #public: Uint8Array;
  /** The key that the open transaction puts in force. */
  #next: { readonly key: KeyObject; readonly publicKey: Uint8Array; readonly tx: TxId } | null = null;
  #lost: Uint8Array | null;
  /** The current key, until the replacement of a lost one is complete. */
  #replacement: NewSigningKey | null;
  #use: KeyUse;
  #digest: Uint8Array | null = null;
  /**
   * Ids of the current key by the name it signs under. Every commit needs one, and would otherwise compute it again.
   */
  readonly #keyIds = new Map<string, Uint8Array>();
  #rotating: Promise<void> = Promise.resolve();

  constructor(parts: LedgerKeysParts, { instance, signing, former, lost }: NodeKeysState) {
    this.#parts = parts;
    this.instance = instance;
    this.#key = signing.key;
    this.#public = publicBytes(signing.key);
    this.#former = [...former];
    this.#lost = lost?.publicKey ?? null;
    this.#replacement = lost?.replacement ?? null;
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

  signHead(origin: string, text: string, tx?: TxId): readonly NoteSignature[] {
    const next = this.#nextIn(tx);
    const signature = this.#signAs(origin, text);
    return next ? [signature, signWith(next.key, next.publicKey, origin, text)] : [signature];
  }

  hasSigned(origin: string, { text, signatures }: Note): boolean {
    const message = Buffer.from(text);
    return signatures.some(
      ({ name, signature }) => name === origin && isSignedBy(this.headKey, message, signature),
    );
  }

  isDigest(digest: Uint8Array): boolean {
    return (
      isEqual(digest, this.#digestInForce()) || (this.#lost !== null && isEqual(digest, this.storedDigest))
    );
  }

  digestInTransaction(tx?: TxId): Uint8Array {
    const next = this.#nextIn(tx);
    if (next) return keysDigest(sha256, [...this.#former, this.#public, next.publicKey]);
    return this.#digestInForce();
  }

  #nextIn(tx: TxId | undefined) {
    return tx === undefined || this.#next?.tx === tx ? this.#next : null;
  }

  async reload(sql: Pick<Sql, "all" | "get">, workspaceId: number): Promise<void> {
    const { keyStore } = this.#parts;
    const current = this.#public;
    const known = [...this.#former, current];
    const stored = await storedKeys(sql);
    const isLonger =
      stored.length > known.length && known.every((key, at) => isEqual(key, stored[at] ?? EMPTY));
    const inForce = stored.at(-1);
    // Whoever asked finds that the digest is still not that of the keys.
    if (!isLonger || !inForce) return;
    const unproven = await firstUnproven(sql, workspaceId, stored.slice(known.length - 1));
    if (unproven) {
      throw new StoreUnavailable(
        "another node has replaced the ledgers' key, and the former key has not vouched for the new one; start again",
      );
    }
    const signing = await keyStore.readInForce(inForce, sql);
    // Another reload or a rotation of this node may have been faster, and have got further.
    if (!signing || this.#public !== current) return;
    this.#adopt(stored.slice(0, -1), signing.key, inForce);
  }

  #adopt(former: readonly Uint8Array[], key: KeyObject, publicKey: Uint8Array): void {
    this.#former = former;
    this.#key = key;
    this.#public = publicKey;
    this.#keyIds.clear();
    this.#digest = null;
  }

  #digestInForce(): Uint8Array {
    this.#digest ??= keysDigest(sha256, [...this.#former, this.#public]);
    return this.#digest;
  }

  get headKey(): Uint8Array {
    return this.#lost ?? this.#public;
  }

  get use(): KeyUse {
    return this.#use;
  }

  async markSigned(): Promise<void> {
    this.#replacement?.complete();
    this.#replacement = null;
    if (this.#use === "node_head") return;
    await this.#parts.keyStore.mark({ key: this.#key, use: "node_head" });
    this.#use = "node_head";
  }

  get isReplacing(): boolean {
    return this.#lost !== null;
  }

  async replaceLost(tx: Tx): Promise<void> {
    if (this.#replacement) await writeNew(tx, this.#replacement);
    replaceKey(tx, this.#public, this.#parts.clock.now());
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

  /** Rotations run one after another: each replaces the key that the previous one put in force. */
  rotate(
    workspaces: () => readonly number[],
    attest: (tx: Tx, both: KeyChange) => Promise<void>,
  ): Promise<void> {
    const done = this.#rotating.then(() => this.#rotateUntilDone(workspaces, attest));
    this.#rotating = done.catch(() => {});
    return done;
  }

  async #rotateUntilDone(
    workspaces: () => readonly number[],
    attest: (tx: Tx, both: KeyChange) => Promise<void>,
  ): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#rotate(workspaces, attest);
        return;
      } catch (error) {
        if (!(error instanceof KeyReplaced) || attempt === MOST_ROTATIONS) throw error;
      }
    }
  }

  /** @throws KeyReplaced */
  async #rotate(
    workspaces: () => readonly number[],
    attest: (tx: Tx, both: KeyChange) => Promise<void>,
  ): Promise<void> {
    const { db, random, clock } = this.#parts;
    const replacement = await this.#parts.keyStore.replacement(this.#public, random, this.#use);
    const { key } = replacement;
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
    await db.tx(workspaces(), async (tx) => {
      // This node may have learned of it when it locked the ledgers' tails.
      if (!isEqual(this.#public, oldPublic)) throw new KeyReplaced();
      tx.onRollback(() => {
        this.#next = null;
      });
      this.#next = { key, publicKey, tx: tx.lockedTails };
      await writeNew(tx, replacement);
      await attest(tx, change);
      replaceKey(tx, publicKey, clock.now());
      tx.onCommit(() => {
        this.#next = null;
        // Another transaction may have seen the new key first.
        if (isEqual(this.#public, oldPublic)) this.#adopt([...this.#former, oldPublic], key, publicKey);
      });
    });
    replacement.complete();
  }
}

/** Another node has replaced the key while this one was about to. */
class KeyReplaced extends StoreUnavailable {
  constructor() {
    super("another node has replaced the signing key");
  }
}

/** @throws KeyReplaced */
async function writeNew(tx: Tx, key: NewSigningKey): Promise<void> {
  if (!(await key.write(tx))) throw new KeyReplaced();
}

function signWith(key: KeyObject, publicKey: Uint8Array, name: string, text: string): NoteSignature {
  return {
    name,
    keyId: keyIdOf(sha256, name, publicKey),
    signature: sign(null, Buffer.from(text), key),
  };
}

async function openInstance(db: Db, random: RandomSource): Promise<string> {
  const known = await db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'instance'");
  if (known) return known.value;
  const bytes = new Uint8Array(INSTANCE_BYTES);
  random(bytes);
  await db.run("INSERT INTO meta (key, value) VALUES ('instance', $1) ON CONFLICT (key) DO NOTHING", [
    bytes.toHex(),
  ]);
  // Another node that starts now may have been first.
  return openInstance(db, random);
}

import { checkpointText, parseCheckpoint } from "./checkpoint.ts";
import { HASH_BYTES, type Sha256, type TreeHash } from "./hash.ts";
import { fromBase64, type Note, NoteError, parseNote } from "./note.ts";

/**
 * The head of a node: one signature over the heads of all its ledgers, made in the transaction of each commit. The
 * heads' texts are the leaves of an RFC 9162 Merkle tree, in the order of the workspaces' numbers.
 *
 * A single ledger cannot be rolled back, because its head would not match the others. A store that several nodes share
 * has no such head (`shared-head.ts`).
 */
export interface NodeHead {
  /** `gatehouse/<instance>`, which is also the name of the key that signs it. Ledgers have longer names. */
  readonly origin: string;
  /** Number of ledgers that have a head. */
  readonly count: number;
  readonly root: Uint8Array;
  /** `keysDigest` of the keys that sign the ledgers: the former ones and the one in force. */
  readonly keys: Uint8Array;
}

export interface SignedNodeHead {
  readonly head: NodeHead;
  readonly note: Note;
}

/** Distinguishes a node's head from a checkpoint, whose text ends after the root. */
const MARK = "gatehouse-node-head/1";
const KEYS = /^keys (?<digest>\S+)$/;

export function nodeHeadText({ origin, count, root, keys }: NodeHead): string {
  return `${checkpointText({ origin, size: count, root })}${MARK}\nkeys ${keys.toBase64()}\n`;
}

/** @throws NoteError if the note is not a node's head */
export function parseNodeHead(text: string): SignedNodeHead {
  const note = parseNote(text);
  const { origin, size: count, root } = parseCheckpoint(note.text);
  const [mark, keyLine = "", ...rest] = note.text.split("\n").slice(3, -1);
  const keys = parseKeysLine(keyLine);
  if (mark !== MARK || rest.length > 0 || keys?.length !== HASH_BYTES) {
    throw new NoteError("the text of the note is not a node's head");
  }
  return { note, head: { origin, count, root, keys } };
}

/** Undefined if the line does not contain a digest of keys. */
export function parseKeysLine(line: string): Uint8Array | undefined {
  return fromBase64(KEYS.exec(line)?.groups?.digest ?? "");
}

/** SHA-256 over the concatenated public keys, oldest first. */
export function keysDigest(sha256: Sha256, publicKeys: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(publicKeys.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const key of publicKeys) {
    all.set(key, at);
    at += key.length;
  }
  return sha256(all);
}

const ENCODER = new TextEncoder();

/** The leaf of a ledger's head, computed from its text (`headText`). */
export function headLeaf(hash: TreeHash, text: string): Uint8Array {
  return hash.leaf(ENCODER.encode(text));
}

import { type Checkpoint, checkpointText, parseCheckpoint } from "./checkpoint.ts";
import { HASH_BYTES, type Sha256 } from "./hash.ts";
import { fromBase64, type Note, NoteError, parseNote } from "./note.ts";

/**
 * All checkpoints that a ledger has stored, in the order in which they were stored. Every stored note changes the digest, so
 * a row that was dropped, added or moved shows.
 */
export interface CheckpointSeries {
  readonly count: number;
  /** SHA-256 over the digest before the last note and that note; 32 zero bytes when there are none. */
  readonly digest: Uint8Array;
}

/**
 * The head of a ledger, which the server signs in the transaction of each commit and stores in `ledger_heads`. Only the
 * last one of each ledger is kept.
 */
export interface LedgerHead extends Checkpoint {
  readonly checkpoints: CheckpointSeries;
  /** `keysDigest` of the keys that sign the ledgers: those of before, and the one in force. */
  readonly keys: Uint8Array;
}

export interface SignedLedgerHead {
  readonly head: LedgerHead;
  readonly note: Note;
}

export const NO_CHECKPOINTS: CheckpointSeries = { count: 0, digest: new Uint8Array(HASH_BYTES) };

/** Tells a head from a checkpoint, whose text ends after the root: a published checkpoint MUST NOT pass for a stored head. */
const MARK = "gatehouse-ledger-head/1";
const KEYS = /^keys (?<digest>\S+)$/;
const SERIES = /^checkpoints (?<count>0|[1-9]\d{0,15}) (?<digest>\S+)$/;

/** A checkpoint's text with three more lines: a mark, the series of stored checkpoints, and the keys. */
export function headText({ checkpoints: { count, digest }, keys, ...checkpoint }: LedgerHead): string {
  return `${checkpointText(checkpoint)}${MARK}\ncheckpoints ${count} ${digest.toBase64()}\nkeys ${keys.toBase64()}\n`;
}

/** SHA-256 over the public keys, the oldest first. */
export function keysDigest(sha256: Sha256, publicKeys: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(publicKeys.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const key of publicKeys) {
    all.set(key, at);
    at += key.length;
  }
  return sha256(all);
}

/** @throws NoteError when the note is not a head, a checkpoint's included */
export function parseSignedHead(text: string): SignedLedgerHead {
  const note = parseNote(text);
  const checkpoint = parseCheckpoint(note.text);
  const [mark, series = "", keyLine = "", ...rest] = note.text.split("\n").slice(3, -1);
  const { count, digest = "" } = SERIES.exec(series)?.groups ?? {};
  const bytes = fromBase64(digest);
  const keys = fromBase64(KEYS.exec(keyLine)?.groups?.digest ?? "");
  const isWhole = mark === MARK && rest.length === 0 && count !== undefined;
  if (!isWhole || bytes?.length !== HASH_BYTES || keys?.length !== HASH_BYTES) {
    throw new NoteError("the text of the note is not a ledger's head");
  }
  return { note, head: { ...checkpoint, checkpoints: { count: Number(count), digest: bytes }, keys } };
}

const ENCODER = new TextEncoder();

/** The series with one more note at its end. */
export function extendSeries(
  sha256: Sha256,
  { count, digest }: CheckpointSeries,
  note: string,
): CheckpointSeries {
  const bytes = ENCODER.encode(note);
  const both = new Uint8Array(HASH_BYTES + bytes.length);
  both.set(digest);
  both.set(bytes, HASH_BYTES);
  return { count: count + 1, digest: sha256(both) };
}

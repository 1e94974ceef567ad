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
}

export interface SignedLedgerHead {
  readonly head: LedgerHead;
  readonly note: Note;
}

export const NO_CHECKPOINTS: CheckpointSeries = { count: 0, digest: new Uint8Array(HASH_BYTES) };

/** Tells a head from a checkpoint, whose text ends after the root: a published checkpoint MUST NOT pass for a stored head. */
const MARK = "gatehouse-ledger-head/1";
const SERIES = /^checkpoints (?<count>0|[1-9]\d{0,15}) (?<digest>\S+)$/;

/** A checkpoint's text with two more lines: a mark, and the series of stored checkpoints. */
export function headText({ checkpoints: { count, digest }, ...checkpoint }: LedgerHead): string {
  return `${checkpointText(checkpoint)}${MARK}\ncheckpoints ${count} ${digest.toBase64()}\n`;
}

/** @throws NoteError when the note is not a head, a checkpoint's included */
export function parseSignedHead(text: string): SignedLedgerHead {
  const note = parseNote(text);
  const checkpoint = parseCheckpoint(note.text);
  const [mark, series = "", ...rest] = note.text.split("\n").slice(3, -1);
  const { count, digest = "" } = SERIES.exec(series)?.groups ?? {};
  const bytes = fromBase64(digest);
  if (mark !== MARK || rest.length > 0 || count === undefined || bytes?.length !== HASH_BYTES) {
    throw new NoteError("the text of the note is not a ledger's head");
  }
  return { note, head: { ...checkpoint, checkpoints: { count: Number(count), digest: bytes } } };
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

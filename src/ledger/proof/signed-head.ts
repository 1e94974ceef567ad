import { type Checkpoint, parseCheckpoint } from "./checkpoint.ts";
import { HASH_BYTES } from "./hash.ts";
import { type CheckpointSeries, parseSeriesLine } from "./head.ts";
import { parseKeysLine } from "./node-head.ts";
import { type Note, NoteError, parseNote } from "./note.ts";

/** A ledger's head as an earlier version signed it: each ledger's head individually, in each commit. */
export interface SignedLedgerHead extends Checkpoint {
  readonly checkpoints: CheckpointSeries;
  /** `keysDigest` of the stored keys. */
  readonly keys: Uint8Array;
  readonly note: Note;
}

const MARK = "gatehouse-ledger-head/1";

/** @throws NoteError if the note is not a head, for example a checkpoint */
export function parseSignedHead(text: string): SignedLedgerHead {
  const note = parseNote(text);
  const checkpoint = parseCheckpoint(note.text);
  const [mark, series = "", keyLine = "", ...rest] = note.text.split("\n").slice(3, -1);
  const checkpoints = parseSeriesLine(series);
  const keys = parseKeysLine(keyLine);
  if (mark !== MARK || rest.length > 0 || !checkpoints || keys?.length !== HASH_BYTES) {
    throw new NoteError("the text of the note is not a ledger's head");
  }
  return { ...checkpoint, note, checkpoints, keys };
}

import type { TreeHead } from "./check.ts";
import { HASH_BYTES } from "./hash.ts";
import { fromBase64, type Note, NoteError, parseNote } from "./note.ts";

/** The head of a workspace's tree, as a note says it (c2sp.org/tlog-checkpoint). */
export interface Checkpoint extends TreeHead {
  /** `gatehouse/<instance>/<workspace>`: also the name of the key that signs it. */
  readonly origin: string;
}

const SIZE = /^(?:0|[1-9]\d{0,15})$/;

export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toBase64()}\n`;
}

/** @throws NoteError for a text that is none. Lines after the third are left aside, as the format allows. */
export function parseCheckpoint(text: string): Checkpoint {
  const [origin, size = "", root = ""] = text.split("\n");
  const hash = fromBase64(root);
  if (!origin || !SIZE.test(size) || !Number.isSafeInteger(Number(size)) || hash?.length !== HASH_BYTES) {
    throw new NoteError("the text of the note is not a checkpoint");
  }
  return { origin, size: Number(size), root: hash };
}

export interface SignedCheckpoint {
  readonly checkpoint: Checkpoint;
  readonly note: Note;
}

/** @throws NoteError */
export function parseSignedCheckpoint(text: string): SignedCheckpoint {
  const note = parseNote(text);
  return { note, checkpoint: parseCheckpoint(note.text) };
}

/** Between two notes of one file there is an empty line, so that people can read it. */
const BETWEEN = /(?<=\n\n(?:— \S+ \S+\n)+)\n*/u;

/** The notes of a file of checkpoints, one after another. @throws NoteError */
export function parseCheckpoints(text: string): SignedCheckpoint[] {
  return text
    .split(BETWEEN)
    .map((note) => note.replace(/^\n+/, ""))
    .filter((note) => note.trim() !== "")
    .map(parseSignedCheckpoint);
}

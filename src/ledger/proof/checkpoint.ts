import type { TreeHead } from "./check.ts";
import { HASH_BYTES } from "./hash.ts";
import { fromBase64, type Note, NoteError, parseNote, SIGNATURE_START } from "./note.ts";

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
  const lines = text.split("\n");
  const isEnded = lines.pop() === "";
  const [origin, size = "", root = ""] = lines;
  const hash = fromBase64(root);
  if (
    !isEnded ||
    lines.includes("") ||
    !origin ||
    !SIZE.test(size) ||
    !Number.isSafeInteger(Number(size)) ||
    hash?.length !== HASH_BYTES
  ) {
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

/**
 * The notes of a file of checkpoints, one after another, with or without empty lines between them. In a checkpoint itself
 * there is one empty line alone: that before its signatures.
 * @throws NoteError for what is none of them, also where the last one breaks off
 */
export function parseCheckpoints(text: string): SignedCheckpoint[] {
  const found: SignedCheckpoint[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; ) {
    if (lines[at] === "") {
      at += 1;
      continue;
    }
    let end = lines.indexOf("", at) + 1;
    while (lines[end]?.startsWith(SIGNATURE_START)) end += 1;
    const note = lines.slice(at, end).join("\n");
    found.push(parseSignedCheckpoint(end < lines.length ? `${note}\n` : note));
    at = end;
  }
  return found;
}

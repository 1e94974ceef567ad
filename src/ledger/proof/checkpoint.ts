import type { TreeHead } from "./check.ts";
import { HASH_BYTES } from "./hash.ts";
import { fromBase64, type Note, NoteError, parseNote, SIGNATURE_START } from "./note.ts";

/** The head of a workspace's tree, as stated in a note (c2sp.org/tlog-checkpoint). */
export interface Checkpoint extends TreeHead {
  /** `gatehouse/<instance>/<workspace>`, which is also the name of the key that signs it. */
  readonly origin: string;
}

const SIZE = /^(?:0|[1-9]\d{0,15})$/;

export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toBase64()}\n`;
}

/** Ignores lines after the third, as the format permits. @throws NoteError if the text is not a checkpoint */
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
 * Parses a file of checkpoints: notes one after another, with or without empty lines between them. The only empty
 * line within a checkpoint is the one before its signatures.
 * @throws NoteError if a part is not a checkpoint, such as a truncated last note
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

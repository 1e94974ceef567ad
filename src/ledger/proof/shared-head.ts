import { type Checkpoint, checkpointText, parseCheckpoint } from "./checkpoint.ts";
import { HASH_BYTES } from "./hash.ts";
import { type CheckpointSeries, parseSeriesLine, parseWorkspaceLine, seriesLine } from "./head.ts";
import { parseKeysLine } from "./node-head.ts";
import { fromBase64, type Note, NoteError, parseNote } from "./note.ts";

/**
 * The head of a ledger in a store that several nodes share. Each commit signs the heads of the ledgers that it has
 * changed, one by one: commits of different workspaces run at the same time, so no signature can cover all ledgers.
 *
 * It contains everything on which the next entry depends, so whichever node appends it needs nothing else.
 */
export interface SharedHead extends Checkpoint {
  readonly workspaceId: number;
  readonly checkpoints: CheckpointSeries;
  /** Time of the last entry in milliseconds, 0 without entries. */
  readonly lastTs: number;
  /** The last entry's leaf hash, 32 zero bytes without entries. */
  readonly lastLeaf: Uint8Array;
  /** `keysDigest` of the ledgers' keys. */
  readonly keys: Uint8Array;
}

/** Distinguishes it from a checkpoint, whose text ends after the root, and from other heads. */
const MARK = "gatehouse-ledger-head/3";
const LAST = /^last (?<ts>0|[1-9]\d{0,15}) (?<leaf>\S+)$/;

export function sharedHeadText(head: SharedHead): string {
  const { workspaceId, checkpoints, lastTs, lastLeaf, keys } = head;
  return (
    `${checkpointText(head)}${MARK}\nworkspace ${workspaceId}\n${seriesLine(checkpoints)}\n` +
    `last ${lastTs} ${lastLeaf.toBase64()}\nkeys ${keys.toBase64()}\n`
  );
}

/** @throws NoteError if the note is not such a head */
export function parseSharedHead(text: string): { readonly head: SharedHead; readonly note: Note } {
  const note = parseNote(text);
  const checkpoint = parseCheckpoint(note.text);
  const lines = note.text.split("\n").slice(3, -1);
  const [mark, workspace = "", series = "", last = "", keyLine = "", ...rest] = lines;
  const workspaceId = parseWorkspaceLine(workspace);
  const checkpoints = parseSeriesLine(series);
  const { ts, leaf = "" } = LAST.exec(last)?.groups ?? {};
  const [lastTs, lastLeaf, keys] = [Number(ts), fromBase64(leaf), parseKeysLine(keyLine)];
  if (
    mark !== MARK ||
    rest.length > 0 ||
    workspaceId === undefined ||
    !checkpoints ||
    !Number.isSafeInteger(lastTs) ||
    lastLeaf?.length !== HASH_BYTES ||
    keys?.length !== HASH_BYTES
  ) {
    throw new NoteError("the text of the note is not the head of a shared ledger");
  }
  return { note, head: { ...checkpoint, workspaceId, checkpoints, lastTs, lastLeaf, keys } };
}

import { type Checkpoint, checkpointText, parseCheckpoint } from "./checkpoint.ts";
import { HASH_BYTES, type Sha256 } from "./hash.ts";
import { fromBase64, NoteError } from "./note.ts";

/**
 * All checkpoints that a ledger has stored, in the order they were stored. Every note changes the digest, so a row
 * that was removed, added or moved is detected.
 */
export interface CheckpointSeries {
  readonly count: number;
  /** SHA-256 over the previous digest followed by the last note; 32 zero bytes if there are no notes. */
  readonly digest: Uint8Array;
}

/**
 * The end of one workspace's ledger after a commit. The node's head covers the heads of all ledgers (`node-head.ts`).
 */
export interface LedgerHead extends Checkpoint {
  readonly workspaceId: number;
  readonly checkpoints: CheckpointSeries;
}

export const NO_CHECKPOINTS: CheckpointSeries = { count: 0, digest: new Uint8Array(HASH_BYTES) };

/** Distinguishes a head from a checkpoint, whose text ends after the root. */
const MARK = "gatehouse-ledger-head/2";
const WORKSPACE = /^workspace (?<id>[1-9]\d{0,15})$/;
const SERIES = /^checkpoints (?<count>0|[1-9]\d{0,15}) (?<digest>\S+)$/;

/** A checkpoint's text with three more lines: a mark, the workspace's number, and the series of stored checkpoints. */
export function headText({ workspaceId, checkpoints, ...checkpoint }: LedgerHead): string {
  return `${checkpointText(checkpoint)}${MARK}\nworkspace ${workspaceId}\n${seriesLine(checkpoints)}\n`;
}

/** @throws NoteError if the text is not a head, for example a checkpoint */
export function parseHead(text: string): LedgerHead {
  const checkpoint = parseCheckpoint(text);
  const [mark, workspace = "", series = "", ...rest] = text.split("\n").slice(3, -1);
  const workspaceId = parseWorkspaceLine(workspace);
  const checkpoints = parseSeriesLine(series);
  if (mark !== MARK || rest.length > 0 || !checkpoints || workspaceId === undefined) {
    throw new NoteError("the text is not a ledger's head");
  }
  return { ...checkpoint, workspaceId, checkpoints };
}

/** Undefined if the line does not name a workspace's number. */
export function parseWorkspaceLine(line: string): number | undefined {
  const id = Number(WORKSPACE.exec(line)?.groups?.id);
  return Number.isSafeInteger(id) ? id : undefined;
}

export function seriesLine({ count, digest }: CheckpointSeries): string {
  return `checkpoints ${count} ${digest.toBase64()}`;
}

/** Undefined if the line is not a series of checkpoints. */
export function parseSeriesLine(line: string): CheckpointSeries | undefined {
  const { count, digest = "" } = SERIES.exec(line)?.groups ?? {};
  const bytes = fromBase64(digest);
  return count !== undefined && bytes?.length === HASH_BYTES
    ? { count: Number(count), digest: bytes }
    : undefined;
}

const ENCODER = new TextEncoder();

/** The series with one more note appended. */
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

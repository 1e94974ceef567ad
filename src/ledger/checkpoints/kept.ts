import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { OperatorError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Sql } from "../../store/db.ts";
import type { LedgerHeads } from "../heads/heads.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import { LedgerChanged } from "../ledger-changed.ts";
import { parseSignedCheckpoint, type SignedCheckpoint } from "../proof/checkpoint.ts";
import { isEqual } from "../proof/hash.ts";
import { NoteError, parseVerifierKey, SIGNATURE_START, signersOf } from "../proof/note.ts";
import { rootAt } from "../reading/proofs.ts";
import type { NamedWorkspace } from "../stored-end.ts";
import { TreeReader } from "../tiles.ts";
import { sha256 } from "../tree-hash.ts";
import { tools } from "../verify/tools.ts";

export interface KeptCheckpointsParts {
  readonly db: Pick<Sql, "all" | "get">;
  readonly keys: Pick<LedgerKeys, "nodeOrigin" | "originOf" | "verifierKeys">;
  readonly heads: Pick<LedgerHeads, "committed">;
  readonly log: Pick<Log, "warn">;
  workspaces(): readonly NamedWorkspace[];
}

/**
 * How much of the file's end is read: about 4,000 checkpoints. A database restored from an older state lacks the
 * newest of them.
 */
const READ_BYTES = 1 << 20;

/**
 * Compares the ledgers with the last checkpoints in `ledger.checkpoint_file`. A database restored as a whole to an
 * earlier state is consistent in itself; only copies kept outside show it. An unreadable file or truncated notes
 * cause only a warning.
 *
 * @throws OperatorError if a ledger is shorter than its last checkpoint, or has different entries
 */
export async function compareKept(path: string, parts: KeptCheckpointsParts): Promise<void> {
  const text = readEnd(path, parts.log);
  if (text === null) return;
  const { keys } = parts;
  const workspaces = new Map(
    parts.workspaces().map((workspace) => [keys.originOf(workspace.name), workspace]),
  );
  for (const { checkpoint } of await lastCheckpoints(text, keys)) {
    const { origin, size, root } = checkpoint;
    const workspace = workspaces.get(origin);
    if (!workspace)
      throw putBack(path, `has a checkpoint of ${origin}, a workspace missing from the database`);
    const committed = await parts.heads.committed(workspace.id);
    const which = `has a checkpoint of ${size} entries of workspace ${JSON.stringify(workspace.name)}`;
    if (size > committed.size) throw putBack(path, `${which}, but the database has ${committed.size}`);
    try {
      const stored = await rootAt(new TreeReader(parts.db, workspace.id), committed, size);
      if (isEqual(stored.root, root)) continue;
    } catch (error) {
      if (!(error instanceof LedgerChanged)) throw error;
    }
    throw putBack(path, `${which}, but the database has different entries`);
  }
}

function putBack(path: string, what: string): OperatorError {
  return new OperatorError(
    `the checkpoint file ${path} ${what}: the database was restored to an earlier state, or changed`,
    "keep a copy of this data directory and find out what is missing (gatehouse ledger verify --data DIR --checkpoint FILE); if you restored an older database on purpose, move the checkpoint file away and keep it",
  );
}

/** Null if there is no file, or nothing can be read from it. */
function readEnd(path: string, log: Pick<Log, "warn">): string | null {
  let descriptor: number | undefined;
  try {
    // Opening a pipe would block.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return null;
    const end = Buffer.alloc(Math.min(stats.size, READ_BYTES));
    const length = readSync(descriptor, end, 0, end.length, stats.size - end.length);
    return end.toString("utf8", 0, length);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code !== "ENOENT") {
      log.warn("the checkpoint file cannot be read, so the ledgers are not compared with it", {
        file: path,
        error,
      });
    }
    return null;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** For each of this node's ledgers, the last checkpoint that is complete. */
async function lastCheckpoints(
  text: string,
  keys: KeptCheckpointsParts["keys"],
): Promise<SignedCheckpoint[]> {
  const last = new Map<string, SignedCheckpoint>();
  const blocks = text.split(/\n\n+/);
  for (let at = blocks.length - 1; at > 0; at--) {
    if (!blocks[at]?.startsWith(SIGNATURE_START)) continue;
    const signed = parsed(`${blocks[at - 1]}\n\n${blocks[at]?.trimEnd()}\n`);
    const origin = signed?.checkpoint.origin;
    if (!signed || !origin?.startsWith(`${keys.nodeOrigin}/`) || last.has(origin)) continue;
    if (await isWhole(signed, keys)) last.set(origin, signed);
  }
  return [...last.values()];
}

/** Undefined for an incomplete note, left by a process that died or by a full disk. */
function parsed(note: string): SignedCheckpoint | undefined {
  try {
    return parseSignedCheckpoint(note);
  } catch (error) {
    if (error instanceof NoteError) return undefined;
    throw error;
  }
}

/** A checkpoint signed by a key unknown to the database counts, since that key may have been removed from it. */
async function isWhole(
  { checkpoint, note }: SignedCheckpoint,
  keys: KeptCheckpointsParts["keys"],
): Promise<boolean> {
  const { current, former } = keys.verifierKeys(checkpoint.origin.slice(keys.nodeOrigin.length + 1));
  const known = [current, ...former].map((key) => parseVerifierKey(sha256, key));
  try {
    await signersOf(note, known, tools.verifySignature);
    return true;
  } catch (error) {
    if (error instanceof NoteError) return false;
    throw error;
  }
}

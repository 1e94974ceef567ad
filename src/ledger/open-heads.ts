import { OperatorError } from "../base/errors.ts";
import { type Db, type Sql, StoreUnavailable } from "../store/db.ts";
import { readTail } from "./chain.ts";
import { leafHash } from "./entry.ts";
import { emptyLedger, type LedgerEnd, LedgerHeads, storedHead } from "./heads.ts";
import type { LedgerKeys } from "./keys.ts";
import { isEqual } from "./proof/hash.ts";
import {
  type CheckpointSeries,
  extendSeries,
  NO_CHECKPOINTS,
  parseSignedHead,
  type SignedLedgerHead,
} from "./proof/head.ts";
import { keyIdOf, NoteError, signersOf } from "./proof/note.ts";
import { nodesOf } from "./proof/ranges.ts";
import { GrowingTree } from "./proof/tree.ts";
import { lastCheckpointSize } from "./proofs.ts";
import { ledgerSize } from "./query.ts";
import { TILE_WIDTH, TreeReader } from "./tiles.ts";
import { sha256, TREE } from "./tree-hash.ts";
import { tools } from "./verify/tools.ts";

export interface OpenHeadsParts {
  readonly db: Db;
  readonly keys: LedgerKeys;
  workspaces(): readonly { readonly id: number; readonly name: string }[];
  nameOf(workspaceId: number): string;
}

/** A ledger from before heads were signed. */
export interface UnsignedLedger {
  readonly workspaceId: number;
  readonly size: number;
  /** Entries that a stored checkpoint covers. */
  readonly checkpointSize: number;
}

export interface OpenHeads {
  readonly heads: LedgerHeads;
  /** Ledgers that have entries and no head yet. The transaction that signs them MUST record it in each. */
  readonly unsigned: readonly UnsignedLedger[];
  /** No head is stored: the first commit signs them all. */
  readonly isFirst: boolean;
}

type Named = ReturnType<OpenHeadsParts["workspaces"]>[number];

const VERIFY =
  "keep a copy of this data directory, see what was changed (gatehouse ledger verify --data DIR)";
const GO_ON = `${VERIFY}, and go on from a backup`;

/**
 * Verifies that the key has signed exactly what each ledger ends with. MUST come before anything is appended.
 *
 * Without heads there is one case in which they are signed: a directory from before there were any. Once heads are signed,
 * the key's own file says so (`keys.hasSigned`): whoever can write the database, and not that file, cannot make a directory
 * look older than it is.
 *
 * @throws OperatorError when a ledger is longer, shorter or another than the one that was signed
 */
export async function openHeads(parts: OpenHeadsParts): Promise<OpenHeads> {
  const { db, keys, workspaces, nameOf } = parts;
  const heads = new LedgerHeads({ keys, nameOf });
  const all = workspaces();
  const stored = new Map<number, string>();
  for (const { id } of all) {
    const note = await storedHead(db, id);
    if (note !== undefined) stored.set(id, note);
  }
  const isFirst = stored.size === 0;
  if (isFirst && keys.hasSigned) {
    if (!(await hasEntries(db))) {
      throw new OperatorError(
        "there is no ledger, though the key of this data directory has signed one: the database was removed or emptied",
        "put the database back from a backup, or, to begin a new ledger under a new key, move ledger.key and gatehouse.db away",
      );
    }
    throw new OperatorError(
      "no head of a ledger is stored, though the key of this data directory has signed heads: they were removed, or the database is older than its key file",
      `${VERIFY}; if you put an older database back on purpose, put back the ledger.key that was beside it`,
    );
  }
  const unsigned: UnsignedLedger[] = [];
  for (const workspace of all) {
    const { id } = workspace;
    const note = stored.get(id);
    if (note !== undefined) {
      heads.set(id, await verifiedEnd(parts, workspace, note), true);
    } else if (isFirst) {
      const end = await unsignedEnd(db, id);
      heads.set(id, end, false);
      const { size } = end.tree;
      if (size > 0)
        unsigned.push({ workspaceId: id, size, checkpointSize: await lastCheckpointSize(db, id) });
    } else {
      throw changed(
        workspace,
        "has no signed head, and other ledgers have one: it was removed, or the workspace was added",
      );
    }
  }
  return { heads, unsigned, isFirst };
}

async function hasEntries(sql: Pick<Sql, "get">): Promise<boolean> {
  return (await sql.get("SELECT 1 FROM ledger LIMIT 1")) !== undefined;
}

/** @throws OperatorError */
async function verifiedEnd({ db, keys }: OpenHeadsParts, workspace: Named, note: string): Promise<LedgerEnd> {
  const { id, name } = workspace;
  const { head } = await signedHead(keys, workspace, note);
  const { size, root, checkpoints } = head;
  if (head.origin !== keys.originOf(name)) throw changed(workspace, `has the head of ${head.origin}`);
  if (!isEqual(head.keys, keys.storedDigest)) {
    throw changed(
      workspace,
      "was signed when other keys were stored than now: keys were added, removed or changed",
    );
  }
  const stored = await ledgerSize(db, id);
  if (stored > size) {
    const entries = stored === size + 1 ? `entry ${stored}` : `entries ${size + 1} to ${stored}`;
    throw changed(
      workspace,
      `ends with an unsigned tail: ${entries} were put there without the ledger's key`,
    );
  }
  if (stored < size) throw changed(workspace, `has ${stored} entries, and ${size} were signed`);
  const end = await endOf(db, workspace, checkpoints);
  if (!isEqual(end.tree.root(), root)) {
    throw changed(workspace, `is not the one that was signed at ${size} entries: it was changed`);
  }
  return end;
}

async function signedHead(keys: LedgerKeys, workspace: Named, note: string): Promise<SignedLedgerHead> {
  try {
    const signed = parseSignedHead(note);
    const origin = keys.originOf(workspace.name);
    const publicKey = keys.headKey;
    const key = { name: origin, keyId: keyIdOf(sha256, origin, publicKey), publicKey };
    const signers = await signersOf(signed.note, [key], tools.verifySignature);
    if (signers.length > 0) return signed;
    throw changed(workspace, "has a head that the ledger's key has not signed");
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw changed(workspace, `has a head that is not good (${error.message})`);
  }
}

/** Of a ledger from before heads were signed. */
async function unsignedEnd(db: Db, workspaceId: number): Promise<LedgerEnd> {
  let checkpoints: CheckpointSeries = NO_CHECKPOINTS;
  for (let after = -1; ; ) {
    const rows = await db.all<{ size: number; note: string }>(
      "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 AND size > $2 ORDER BY size LIMIT 1024",
      [workspaceId, after],
    );
    for (const { note } of rows) checkpoints = extendSeries(sha256, checkpoints, note);
    const last = rows.at(-1);
    if (!last) return endOf(db, { id: workspaceId, name: String(workspaceId) }, checkpoints);
    after = last.size;
  }
}

/** As tiles, and the entries behind the last of them, say it. @throws OperatorError */
async function endOf(db: Db, workspace: Named, checkpoints: CheckpointSeries): Promise<LedgerEnd> {
  const size = await ledgerSize(db, workspace.id);
  if (size === 0) return { ...emptyLedger(), checkpoints };
  try {
    const range = { start: 0, end: size };
    const subtrees = await new TreeReader(db, workspace.id).subtreesOf(range);
    const tree = new GrowingTree(TREE);
    for (const [index, { level }] of nodesOf(range).entries())
      tree.append(subtrees[index] ?? TREE.empty(), level);
    await checkLastBlock(db, workspace, size);
    return { tail: await readTail(db, workspace.id), tree, checkpoints };
  } catch (error) {
    if (error instanceof StoreUnavailable || error instanceof OperatorError) throw error;
    throw changed(workspace, `cannot be read (${error instanceof Error ? error.message : String(error)})`);
  }
}

/** The entries behind the last tile, and the last one in any case: what follows takes its time from it. */
async function checkLastBlock(db: Db, workspace: Named, size: number): Promise<void> {
  const first = Math.floor((size - 1) / TILE_WIDTH) * TILE_WIDTH + 1;
  const after = size % TILE_WIDTH === 0 ? size - 1 : first - 1;
  const rows = await db.all<{ seq: number; leaf: Uint8Array; bytes: string }>(
    "SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq > $2 ORDER BY seq",
    [workspace.id, after],
  );
  for (const { seq, leaf, bytes } of rows) {
    if (!isEqual(leaf, leafHash(bytes))) throw changed(workspace, `has another entry ${seq} than was signed`);
  }
}

function changed({ name }: Named, what: string): OperatorError {
  return new OperatorError(`the ledger of workspace ${JSON.stringify(name)} ${what}`, GO_ON);
}

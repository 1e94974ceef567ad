import { OperatorError } from "../../base/errors.ts";
import type { Sql } from "../../store/db.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import { completeLedger } from "../ledger.ts";
import { isEqual } from "../proof/hash.ts";
import { parseHead } from "../proof/head.ts";
import { type NodeHead, parseNodeHead } from "../proof/node-head.ts";
import { keyIdOf, type Note, NoteError, signersOf } from "../proof/note.ts";
import { parseSignedHead } from "../proof/signed-head.ts";
import { lastCheckpointSize } from "../reading/proofs.ts";
import { ledgerChanged, type NamedWorkspace, unsignedEnd, VERIFY_HINT } from "../stored-end.ts";
import { sha256 } from "../tree-hash.ts";
import { tools } from "../verify/tools.ts";
import type { HeadStore, OpenHeads, OpenHeadsParts, UnsignedLedger } from "./heads.ts";
import { NODE, NodeHeads } from "./node-heads.ts";
import { type SignedEnd, verifiedEnd } from "./verified-end.ts";

/** For a store that only this process writes. */
export const nodeHeadStore: HeadStore = {
  open: openNodeHeads,
  async isSigned(sql) {
    return (await sql.get("SELECT 1 FROM ledger_heads LIMIT 1")) !== undefined;
  },
};

/**
 * Verifies that the key has signed exactly the end of each ledger, and the ends of all ledgers together. MUST run
 * before anything is appended.
 *
 * In two cases, heads are signed that were not signed this way before: a data directory that predates heads, and one
 * whose heads were signed individually. The key's own file states what the key has signed (`keys.use`). So an
 * attacker who can write the database, but not that file, cannot make a directory look older than it is.
 *
 * @throws OperatorError if a ledger is longer or shorter than the one that was signed, or has different entries
 */
async function openNodeHeads(parts: OpenHeadsParts): Promise<OpenHeads> {
  const { db, keys, nameOf } = parts;
  const workspaces = [...parts.workspaces()].sort((a, b) => a.id - b.id);
  const heads = new NodeHeads({ keys, nameOf });
  db.beforeCommit((tx) => heads.write(tx));
  const stored = await storedHeads(db);
  const note = await storedNodeHead(db);
  if (note !== undefined) {
    const node = await verifiedNodeHead(keys, note);
    for (const workspace of workspaces) {
      const signed = headOf(keys, workspace, stored.get(workspace.id));
      heads.set(workspace.id, await verifiedEnd(db, workspace, signed), true);
    }
    checkTogether(heads, node, stored.size);
    return { heads, unsigned: [], state: "signed" };
  }
  if (keys.use === "node_head" || (keys.use === "ledger_heads" && stored.size === 0)) throw await missing(db);
  if (stored.size > 0) {
    for (const workspace of workspaces) {
      const signed = await signedHeadOf(keys, workspace, stored.get(workspace.id));
      heads.set(workspace.id, await verifiedEnd(db, workspace, signed), false);
    }
    return { heads, unsigned: [], state: "upgrade" };
  }
  const unsigned: UnsignedLedger[] = [];
  for (const { id } of workspaces) {
    await completeLedger(db, id);
    const end = await unsignedEnd(db, id);
    heads.set(id, end, false);
    const { size } = end.tree;
    if (size > 0) unsigned.push({ workspaceId: id, size, checkpointSize: await lastCheckpointSize(db, id) });
  }
  return { heads, unsigned, state: "first" };
}

/** By workspace number. */
async function storedHeads(sql: Pick<Sql, "all">): Promise<ReadonlyMap<number, string>> {
  const rows = await sql.all<{ workspace_id: number; note: string }>(
    "SELECT workspace_id, note FROM ledger_heads",
  );
  return new Map(rows.map(({ workspace_id: id, note }) => [id, note]));
}

async function storedNodeHead(sql: Pick<Sql, "get">): Promise<string | undefined> {
  const row = await sql.get<{ note: string }>("SELECT note FROM ledger_node_heads WHERE node = $1", [NODE]);
  return row?.note;
}

async function missing(sql: Pick<Sql, "get">): Promise<OperatorError> {
  if ((await sql.get("SELECT 1 FROM ledger LIMIT 1")) === undefined) {
    return new OperatorError(
      "there is no ledger, although the key of this data directory has signed one: the database was removed or emptied",
      "restore the database from a backup, or, to begin a new ledger under a new key, move ledger.key and gatehouse.db away",
    );
  }
  return new OperatorError(
    "the signed head of the ledgers is missing, although the key of this data directory has signed one: it was removed, or the database is older than its key file",
    `${VERIFY_HINT}; if you restored an older database on purpose, also restore the ledger.key that belongs to it`,
  );
}

/** @throws OperatorError */
async function verifiedNodeHead(keys: LedgerKeys, text: string): Promise<NodeHead> {
  try {
    const { note, head } = parseNodeHead(text);
    if (!(await isSigned(keys, keys.nodeOrigin, note))) {
      throw changed("the head of all ledgers is not signed with the ledgers' key");
    }
    if (isEqual(head.keys, keys.storedDigest)) return head;
    throw changed(
      "the head of all ledgers was signed when different keys were stored: keys were added, removed or changed",
    );
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw changed(`the head of all ledgers is invalid (${error.message})`);
  }
}

async function isSigned(keys: LedgerKeys, name: string, note: Note): Promise<boolean> {
  const publicKey = keys.headKey;
  const key = { name, keyId: keyIdOf(sha256, name, publicKey), publicKey };
  return (await signersOf(note, [key], tools.verifySignature)).length > 0;
}

/** A head's row, trusted only once all heads together yield the signed root. @throws OperatorError */
function headOf(keys: LedgerKeys, workspace: NamedWorkspace, text: string | undefined): SignedEnd {
  if (text === undefined) throw ledgerChanged(workspace, NO_HEAD);
  try {
    const head = parseHead(text);
    if (head.workspaceId === workspace.id && head.origin === keys.originOf(workspace.name)) return head;
    throw ledgerChanged(workspace, `has the head of ${head.origin}, workspace ${head.workspaceId}`);
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw ledgerChanged(workspace, `has an invalid head (${error.message})`);
  }
}

const NO_HEAD = "has no signed head: it was removed, or the workspace was added";

/** The head of a version that signed each head individually. @throws OperatorError */
async function signedHeadOf(
  keys: LedgerKeys,
  workspace: NamedWorkspace,
  text: string | undefined,
): Promise<SignedEnd> {
  if (text === undefined) throw ledgerChanged(workspace, NO_HEAD);
  try {
    const signed = parseSignedHead(text);
    const origin = keys.originOf(workspace.name);
    if (!(await isSigned(keys, origin, signed.note))) {
      throw ledgerChanged(workspace, "has a head that the ledger's key has not signed");
    }
    if (signed.origin !== origin) throw ledgerChanged(workspace, `has the head of ${signed.origin}`);
    if (isEqual(signed.keys, keys.storedDigest)) return signed;
    throw ledgerChanged(
      workspace,
      "was signed when different keys were stored: keys were added, removed or changed",
    );
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw ledgerChanged(workspace, `has an invalid head (${error.message})`);
  }
}

/** @throws OperatorError */
function checkTogether(heads: NodeHeads, node: NodeHead, stored: number): void {
  const { size, root } = heads.together;
  if (stored !== size) {
    throw changed(`${stored} heads of ledgers are stored for ${size} workspaces: a workspace was removed`);
  }
  if (node.count === size && isEqual(node.root, root)) return;
  throw changed(
    "the ledgers are not those that were signed together: the evidence of a workspace was restored to an earlier state, or its head was changed",
  );
}

function changed(what: string): OperatorError {
  return new OperatorError(what, `${VERIFY_HINT}, and restore a backup`);
}

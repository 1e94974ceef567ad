import type { Db, Sql } from "../../store/db.ts";
import type { LedgerHeads } from "../heads/heads.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import { LedgerChanged } from "../ledger-changed.ts";
import { isConsistent, type TreeHead } from "../proof/check.ts";
import { checkpointText } from "../proof/checkpoint.ts";
import { formatNote } from "../proof/note.ts";
import { consistencyRanges, inclusionRanges } from "../proof/ranges.ts";
import { TreeReader } from "../tiles.ts";
import { TREE } from "../tree-hash.ts";
import { findEntry } from "./query.ts";

/** The signed head of a workspace's tree. */
export interface SignedHead extends TreeHead {
  /** The C2SP signed note. */
  readonly note: string;
}

export interface InclusionProof {
  readonly leaf: Uint8Array;
  /** From the leaf's sibling to the root's child, in the tree of `head`. */
  readonly inclusion: readonly Uint8Array[];
  readonly head: SignedHead;
}

export interface ConsistencyProof {
  readonly consistency: readonly Uint8Array[];
  /** The head of the newer tree. */
  readonly head: SignedHead;
}

/** Proofs about the ledgers, signed when they are requested. They are computed from the data on disk. */
export interface Proofs {
  /**
   * @param size Size of an earlier tree. Default: the current tree.
   * @throws LedgerChanged if the stored tree is not the one that was signed
   */
  head(workspaceId: number, size?: number): Promise<SignedHead>;
  /**
   * Proves an entry in the current tree, or in the earlier one with `size` entries; undefined if that tree has no
   * such entry.
   */
  inclusion(workspaceId: number, seq: number, size?: number): Promise<InclusionProof | undefined>;
  /** Undefined if there is no such pair of trees: `from` is past `to`, or `to` is past the current size. */
  consistency(workspaceId: number, from: number, to?: number): Promise<ConsistencyProof | undefined>;
}

export interface ProofParts {
  readonly db: Pick<Db, "all" | "get">;
  readonly heads: Pick<LedgerHeads, "committed">;
  readonly keys: LedgerKeys;
  nameOf(workspaceId: number): string;
}

export function createProofs({ db, heads, keys, nameOf }: ProofParts): Proofs {
  async function headOf(tree: TreeReader, workspaceId: number, size?: number): Promise<SignedHead> {
    const head = await rootAt(tree, await heads.committed(workspaceId), size);
    return { ...head, note: signHead(keys, nameOf(workspaceId), head) };
  }

  return {
    head: (workspaceId, size) => headOf(new TreeReader(db, workspaceId), workspaceId, size),
    async inclusion(workspaceId, seq, size) {
      const upTo = size ?? (await heads.committed(workspaceId)).size;
      const entry = seq <= upTo ? await findEntry(db, workspaceId, seq) : undefined;
      if (!entry) return undefined;
      const tree = new TreeReader(db, workspaceId);
      const [inclusion, head] = await Promise.all([
        tree.hashesOf(inclusionRanges(seq - 1, upTo)),
        headOf(tree, workspaceId, upTo),
      ]);
      return { leaf: entry.leaf, inclusion, head };
    },
    async consistency(workspaceId, from, given) {
      const { size } = await heads.committed(workspaceId);
      const to = given ?? size;
      if (from > to || to > size) return undefined;
      const tree = new TreeReader(db, workspaceId);
      const [consistency, head] = await Promise.all([
        tree.hashesOf(consistencyRanges(from, to)),
        headOf(tree, workspaceId, to),
      ]);
      return { consistency, head };
    },
  };
}

/**
 * The head of an earlier tree. Its root is computed from stored tiles, which anyone who can write the file could
 * change. So it counts only if the signed tree begins with it.
 * @throws LedgerChanged
 */
export async function rootAt(tree: TreeReader, signed: TreeHead, size = signed.size): Promise<TreeHead> {
  if (size === signed.size) return signed;
  const head = { size, root: await tree.root(size) };
  const proof = size < signed.size ? await tree.hashesOf(consistencyRanges(size, signed.size)) : [];
  if (isConsistent(TREE, head, signed, proof)) return head;
  throw new LedgerChanged(`the stored tree of ${size} entries is not the beginning of the signed tree`);
}

export function signHead(
  keys: Pick<LedgerKeys, "originOf" | "sign">,
  workspace: string,
  head: TreeHead,
): string {
  const text = checkpointText({ origin: keys.originOf(workspace), ...head });
  return formatNote({ text, signatures: [keys.sign(workspace, text)] });
}

/** The size of the last stored checkpoint; -1 if there is none. */
export async function lastCheckpointSize(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ size: number }>(
    "SELECT size FROM ledger_checkpoints WHERE workspace_id = $1 ORDER BY size DESC LIMIT 1",
    [workspaceId],
  );
  return row?.size ?? -1;
}

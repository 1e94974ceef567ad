import type { Db, Sql } from "../store/db.ts";
import type { LedgerKeys } from "./keys.ts";
import type { TreeHead } from "./proof/check.ts";
import { checkpointText } from "./proof/checkpoint.ts";
import { formatNote } from "./proof/note.ts";
import { consistencyRanges, inclusionRanges } from "./proof/ranges.ts";
import { findEntry, ledgerSize } from "./query.ts";
import { TreeReader } from "./tiles.ts";

/** The head of a workspace's tree, signed. */
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
  /** Of the newer tree. */
  readonly head: SignedHead;
}

/** What can be proven of the ledgers, signed at the moment it is asked for. All reads are of what is on disk. */
export interface Proofs {
  /** @param size of an earlier tree. Default: the tree of now. */
  head(workspaceId: number, size?: number): Promise<SignedHead>;
  /** Of an entry within the tree of now, or the earlier one of `size`; undefined where there is no such entry in it. */
  inclusion(workspaceId: number, seq: number, size?: number): Promise<InclusionProof | undefined>;
  /** Undefined where there was no such pair of trees: `from` is past `to`, or `to` past the tree of now. */
  consistency(workspaceId: number, from: number, to?: number): Promise<ConsistencyProof | undefined>;
}

export function createProofs(db: Db, keys: LedgerKeys, nameOf: (workspaceId: number) => string): Proofs {
  function signed(workspaceId: number, head: TreeHead): SignedHead {
    return { ...head, note: signHead(keys, nameOf(workspaceId), head) };
  }

  async function headOf(tree: TreeReader, workspaceId: number, size: number): Promise<SignedHead> {
    return signed(workspaceId, { size, root: await tree.root(size) });
  }

  return {
    async head(workspaceId, size) {
      return headOf(
        new TreeReader(db, workspaceId),
        workspaceId,
        size ?? (await ledgerSize(db, workspaceId)),
      );
    },
    async inclusion(workspaceId, seq, size) {
      const upTo = size ?? (await ledgerSize(db, workspaceId));
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
      const size = await ledgerSize(db, workspaceId);
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

export function signHead(
  keys: Pick<LedgerKeys, "originOf" | "sign">,
  workspace: string,
  head: TreeHead,
): string {
  const text = checkpointText({ origin: keys.originOf(workspace), ...head });
  return formatNote({ text, signatures: [keys.sign(workspace, text)] });
}

/** The size of the last checkpoint that is stored; -1 where there is none. */
export async function lastCheckpointSize(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ size: number }>(
    "SELECT size FROM ledger_checkpoints WHERE workspace_id = $1 ORDER BY size DESC LIMIT 1",
    [workspaceId],
  );
  return row?.size ?? -1;
}

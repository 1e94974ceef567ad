import type { LedgerTail } from "../../store/db.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import { HASH_BYTES, isEqual } from "../proof/hash.ts";
import { NoteError } from "../proof/note.ts";
import { nodesOf } from "../proof/ranges.ts";
import { parseSharedHead } from "../proof/shared-head.ts";
import { GrowingTree } from "../proof/tree.ts";
import { TREE } from "../tree-hash.ts";
import type { LedgerEnd } from "./heads.ts";

export interface StoredTailParts {
  readonly keys: Pick<LedgerKeys, "originOf" | "hasSigned" | "isDigest">;
  nameOf(workspaceId: number): string;
}

/** A row of `ledger_tails` is not one that the ledgers' key has signed. The message continues "the ledger of workspace 1". */
export class TailChanged extends Error {
  override readonly name = "TailChanged";
}

/** It was signed when the ledgers had other keys than this node knows: another node may have replaced the key. */
export class KeysUnknown extends TailChanged {}

/** The end of a ledger according to its row. @throws TailChanged */
export function endOfTail(parts: StoredTailParts, workspaceId: number, row: LedgerTail): LedgerEnd {
  const { keys, nameOf } = parts;
  const { head, note } = parsed(row.head);
  const origin = keys.originOf(nameOf(workspaceId));
  if (head.origin !== origin || head.workspaceId !== workspaceId)
    throw new TailChanged(`has the head of ${head.origin}, workspace ${head.workspaceId}`);
  if (!keys.isDigest(head.keys)) {
    throw new KeysUnknown(
      "was signed with other keys than those that are stored: keys were added, removed or changed",
    );
  }
  if (!keys.hasSigned(origin, note)) throw new TailChanged("has a head that the ledgers' key has not signed");
  const tree = treeOf(head.size, row.edge);
  if (!tree || !isEqual(tree.root(), head.root)) throw new TailChanged("has a tree that was not signed");
  const leaf = head.lastLeaf;
  return {
    tree,
    checkpoints: head.checkpoints,
    tail: { seq: head.size, leaf, leafHex: leaf.toHex(), ts: head.lastTs },
  };
}

function parsed(text: string): ReturnType<typeof parseSharedHead> {
  try {
    return parseSharedHead(text);
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw new TailChanged(`has an invalid head (${error.message})`);
  }
}

/** The hashes of the complete subtrees that a tree consists of, largest first. */
export function edgeOf(tree: GrowingTree): Uint8Array {
  const edge = new Uint8Array(tree.subtrees.length * HASH_BYTES);
  for (const [index, { hash }] of tree.subtrees.entries()) edge.set(hash, index * HASH_BYTES);
  return edge;
}

function treeOf(size: number, edge: Uint8Array): GrowingTree | undefined {
  const levels = nodesOf({ start: 0, end: size });
  if (edge.length !== levels.length * HASH_BYTES) return undefined;
  const tree = new GrowingTree(TREE);
  for (const [index, { level }] of levels.entries())
    tree.append(edge.slice(index * HASH_BYTES, (index + 1) * HASH_BYTES), level);
  return tree;
}

import { signHead } from "../reading/proofs.ts";
import { TreeReader } from "../tiles.ts";
import type { BundleParts, BundleRequest } from "./bundle.ts";
import type { SeqSpan } from "./format/erasures.ts";
import type { BundleTree } from "./format/manifest.ts";

/** What a bundle covers, fixed when the export begins. */
export interface Snapshot {
  /** Number of the ledger's entries. */
  readonly size: number;
  /** Root of the ledger's tree, as signed. */
  readonly root: Uint8Array;
  /** Entries of the range. If there are none, `last` is `first` - 1. */
  readonly first: number;
  readonly last: number;
  /**
   * The entries of the period. The same as the range, unless the range was widened for an exporter who may not see
   * the neighbouring entries.
   */
  readonly shown: SeqSpan;
  /** When the export began, as an RFC 3339 timestamp. */
  readonly at: string;
}

/** The signed tree of the snapshot. */
export interface SignedTree extends BundleTree {
  readonly origin: string;
  /** The signed note. */
  readonly note: string;
  /** Verifier keys: the one that signed, and its predecessors, oldest first. */
  readonly keys: { readonly current: string; readonly former: readonly string[] };
}

/** Signs the tree's head and collects the hashes that lead from the range's leaves to its root. */
export async function signTree(
  { db, keys }: Pick<BundleParts, "db" | "keys">,
  { workspace }: Pick<BundleRequest, "workspace">,
  { size, root, first, last }: Pick<Snapshot, "size" | "root" | "first" | "last">,
): Promise<SignedTree> {
  const tree = new TreeReader(db, workspace.id);
  const before = await tree.subtreesOf({ start: 0, end: first - 1 });
  const after = await tree.subtreesOf({ start: last, end: size });
  return {
    origin: keys.originOf(workspace.name),
    size,
    root: root.toHex(),
    before: before.map((hash) => hash.toBase64()),
    after: after.map((hash) => hash.toBase64()),
    note: signHead(keys, workspace.name, { size, root }),
    keys: keys.verifierKeys(workspace.name),
  };
}

import { signHead } from "../proofs.ts";
import { TreeReader } from "../tiles.ts";
import type { BundleParts, BundleRequest } from "./bundle.ts";
import type { Span } from "./format/erasures.ts";
import type { BundleTree } from "./format/manifest.ts";

/** What a bundle is about, fixed when it begins. */
export interface Snapshot {
  /** Of the ledger. */
  readonly size: number;
  /** Of its tree, as it was signed. */
  readonly root: Uint8Array;
  /** Entries of the range; `last` is `first` - 1 where there are none. */
  readonly first: number;
  readonly last: number;
  /** Those of them that are of the period. The same, unless the range was widened for somebody who may not see its neighbours. */
  readonly shown: Span;
  /** When it was begun: RFC 3339. */
  readonly at: string;
}

/** The tree of the snapshot, signed. */
export interface SignedTree extends BundleTree {
  readonly origin: string;
  /** The signed note. */
  readonly note: string;
  /** Verifier keys: the one that signed, and those before it, the oldest first. */
  readonly keys: { readonly current: string; readonly former: readonly string[] };
}

/** Signs the tree's head, and takes with it what leads from the range's leaves to its root. */
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

import type { SharedCopy, SharedTail } from "../../store/sqlite/shared-copy.ts";
import { HASH_BYTES } from "../proof/hash.ts";
import { keysDigest } from "../proof/node-head.ts";
import { signersOf } from "../proof/note.ts";
import { nodesOf } from "../proof/ranges.ts";
import { parseSharedHead } from "../proof/shared-head.ts";
import { GrowingTree } from "../proof/tree.ts";
import { TREE } from "../tree-hash.ts";
import type { VerifiedHead, VerifiedHeadParts } from "./head.ts";
import type { StoredHeads } from "./node-head.ts";
import type { VerificationReport } from "./report.ts";

/** The heads of ledgers in a store that nodes share. Each is signed on its own, with all that the next entry depends on. */
export function sharedHeads(tails: readonly SharedTail[]): StoredHeads {
  return {
    texts: new Map(tails.map(({ workspaceId, head }) => [workspaceId, head])),
    edges: new Map(tails.map(({ workspaceId, edge }) => [workspaceId, edge])),
    ...{ areSingle: false, signers: [], isUnsigned: false },
    conclude() {},
  };
}

/** Reports what a superuser of the database has undone, and rows that no server has written. */
export function reportCopy({ unprotected, refused }: SharedCopy, report: VerificationReport): void {
  for (const what of unprotected) {
    report.tampered(
      "protection_removed",
      `The ledgers are not protected any more: ${what}. Only somebody with all rights in the database can have done this.`,
    );
  }
  for (const { table, problem } of refused) {
    report.tampered(
      "database_damaged",
      `The table ${table} has rows that no server has written: ${problem}.`,
    );
  }
}

const LAST = "SELECT leaf, bytes FROM main.ledger WHERE workspace_id = $1 AND seq = $2";

/** @throws NoteError if it is not a head */
export async function sharedHead(
  parts: VerifiedHeadParts,
  text: string,
  edge: Uint8Array,
): Promise<VerifiedHead | null> {
  const { database, workspaceId, origin, keys, storedKeys, tools, report } = parts;
  const { head, note } = parseSharedHead(text);
  if (head.origin !== origin || head.workspaceId !== workspaceId) {
    report.tampered(
      "head_of_another_ledger",
      `The ledger's head belongs to another ledger, ${JSON.stringify(head.origin)}.`,
    );
    return null;
  }
  const signers = await signersOf(note, keys, tools.verifySignature);
  if (signers.length === 0) {
    report.tampered(
      "head_of_another_key",
      "The ledger's head is not signed by any of the ledger's keys: somebody else made it, or the keys were changed.",
    );
    return null;
  }
  if (keysDigest(tools.sha256, storedKeys).toHex() !== head.keys.toHex()) {
    report.tampered(
      "key_changed",
      "The ledgers' keys are not those stored when the ledger's head was signed: rows were added, removed or changed.",
    );
  }
  if (rootOf(head.size, edge) !== head.root.toHex()) {
    report.tampered(
      "head_changed",
      "The edge of the ledger's tree beside its head is not the one that was signed.",
    );
  }
  const last = database.get<{ leaf: Uint8Array; bytes: string }>(LAST, [workspaceId, head.size]);
  if (last && Buffer.compare(last.leaf, head.lastLeaf) !== 0) {
    report.tampered(
      "head_changed",
      `The last entry, ${head.size}, is not the one that the ledger's head names.`,
      head.size,
    );
  }
  return { ...head, signers };
}

/** The root of a tree with these complete subtrees, largest first, in hexadecimal digits. */
function rootOf(size: number, edge: Uint8Array): string | undefined {
  const levels = nodesOf({ start: 0, end: size });
  if (edge.length !== levels.length * HASH_BYTES) return undefined;
  const tree = new GrowingTree(TREE);
  for (const [index, { level }] of levels.entries())
    tree.append(edge.slice(index * HASH_BYTES, (index + 1) * HASH_BYTES), level);
  return tree.root().toHex();
}

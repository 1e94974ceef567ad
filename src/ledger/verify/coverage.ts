import type { TrustAnchors } from "../proof/verification.ts";
import { counted } from "./report.ts";

/** How many of a ledger's entries a signature covers, as a phrase. */
export function coverageOf(size: number, covered: number): string {
  if (covered === size) return "all entries, by a signature";
  if (covered === 0) return "no entry";
  return `entries 1 to ${counted(covered)}, by a signature; the last ${counted(size - covered)} are not covered`;
}

/**
 * What the store alone cannot prove, and what would prove it.
 * @param kept Number of entries covered by a checkpoint kept elsewhere. It covers no later entry.
 */
export function uncheckedOf(trust: TrustAnchors, kept: number, isOneWorkspace: boolean): string[] {
  const unchecked = [
    kept === 0
      ? "whether an earlier state was restored, or the ledger was rewritten with its key: only a checkpoint that was kept elsewhere shows that (--checkpoint)"
      : `whether the ledger was truncated after entry ${counted(kept)}, or rewritten from there with its key: the checkpoints supplied cover no later entry; only a newer one that was kept elsewhere would (--checkpoint)`,
  ];
  if (trust.keys.length === 0) {
    unchecked.push(
      kept === 0
        ? "whether the stored key is the ledger's own, or everything was signed with another key: only a key that was kept elsewhere shows that (--key)"
        : "whether the key that signed the checkpoints is the ledger's own: only a key that was kept elsewhere shows that (--key)",
    );
  }
  if (isOneWorkspace) {
    unchecked.push("the other workspaces, and whether one is missing: omit --workspace");
  }
  return unchecked;
}

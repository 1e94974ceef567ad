import type { Trust } from "../proof/verification.ts";
import { counted } from "./report.ts";

/** How many of a ledger's entries a signature covers, in words. */
export function coverageOf(size: number, covered: number): string {
  if (covered === size) return "all entries, by a signature";
  if (covered === 0) return "no entry";
  return `entries 1 to ${counted(covered)}, by a signature; ${counted(size - covered)} came after it`;
}

/**
 * What the directory alone cannot prove, and what would prove it.
 * @param kept Number of entries covered by a checkpoint from elsewhere. It covers no later entry.
 */
export function uncheckedOf(trust: Trust, kept: number, isOneWorkspace: boolean): string[] {
  const unchecked = [
    kept === 0
      ? "whether the directory was put back to an older state that it once had, or the ledger was made again with its key: only a checkpoint that was kept elsewhere shows that (--checkpoint)"
      : `whether the ledger was cut off after entry ${counted(kept)}, or made again from there with its key: the checkpoints that were given cover nothing after it, and only a newer one that was kept elsewhere would (--checkpoint)`,
  ];
  if (trust.keys.length === 0) {
    unchecked.push(
      kept === 0
        ? "whether the key in the directory is the ledger's own, or all was signed with another one: only the key that was kept elsewhere shows that (--key)"
        : "whether the key that signed the checkpoints is the ledger's own: only the key that was kept elsewhere shows that (--key)",
    );
  }
  if (isOneWorkspace) {
    unchecked.push("the other workspaces, and whether one is missing: leave out --workspace");
  }
  return unchecked;
}

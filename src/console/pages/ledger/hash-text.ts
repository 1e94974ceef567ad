import type { LeafRange } from "../../../ledger/proof/ranges.ts";
import { countText } from "../../parts/text.tsx";

/** The first digits of a hash, enough to tell hashes apart. */
export function shortHash(hash: Uint8Array): string {
  return `${hash.toHex().slice(0, 10)}…`;
}

/** The entries below a node: `entry 7`, `entries 1 to 256`. */
export function rangeText({ start, end }: LeafRange): string {
  return end - start === 1
    ? `entry ${countText(end)}`
    : `entries ${countText(start + 1)} to ${countText(end)}`;
}

import { counted, type VerificationReport } from "./report.ts";
import type { RootCheck } from "./roots.ts";
import type { Difference } from "./tiles.ts";

type CheckpointTracks = Pick<RootCheck, "stored" | "given" | "head">;

/** What contradicts a chain, and which entries it affects. */
interface Contradiction {
  /** The last entry known to be unchanged. */
  readonly lastGood: number;
  /** Size of the first checkpoint with a different root. */
  readonly upTo: number;
  readonly by: keyof CheckpointTracks;
  /** Number of checkpoints with a different root. */
  readonly count: number;
}

/**
 * Reports a chain that is consistent but is not the one that was signed, because it was rewritten after a change.
 * @param difference Where the leaves in the tiles begin to differ
 * @returns the first entry that may have been changed; null if nothing was rewritten
 */
export function reportRewritten(
  report: VerificationReport,
  tracks: CheckpointTracks,
  difference: Difference | null,
): number | null {
  const found = contradictionOf(tracks);
  if (found === null) return reportByTiles(report, tracks, difference);
  const { lastGood, upTo, by, count } = found;
  const pinned =
    difference && difference.first > lastGood && difference.first <= upTo ? difference.first : null;
  const where =
    pinned === null
      ? `Somewhere from entry ${lastGood + 1} to ${upTo}, entries were changed and the chain was rewritten`
      : `From entry ${pinned} on, the chain was rewritten, as the tree's tiles show`;
  const which = WHICH[by];
  const more = count > 1 ? `, and ${counted(count - 1)} after it,` : "";
  const { stored } = tracks;
  const isForged = by === "given" && stored.firstWrong === 0 && stored.lastGood >= upTo;
  report.tampered(
    "entries_rewritten",
    `${where}: it is consistent, but ${which} of ${counted(upTo)} entries${more} was signed over different entries.` +
      (isForged
        ? " The stored checkpoints agree with it: they were signed again with the ledger's own key."
        : ""),
    pinned ?? lastGood + 1,
  );
  return pinned ?? lastGood + 1;
}

const WHICH = {
  head: "the head that the last commit signed",
  stored: "the checkpoint",
  given: "a checkpoint that was kept elsewhere",
} as const satisfies Record<keyof CheckpointTracks, string>;

/**
 * Chooses the contradicting signature over the fewest entries. Stored checkpoints may have been rewritten together
 * with the entries; those kept elsewhere were not.
 */
function contradictionOf(tracks: CheckpointTracks): Contradiction | null {
  const [first] = (["stored", "given", "head"] as const)
    .filter((by) => tracks[by].firstWrong > 0)
    .toSorted((a, b) => tracks[a].firstWrong - tracks[b].firstWrong);
  if (first === undefined) return null;
  const { firstWrong: upTo, wrong: count } = tracks[first];
  const { stored, given } = tracks;
  const isStoredGood = stored.firstWrong > 0 || first === "head";
  const good = [given.lastGood, isStoredGood ? stored.lastGood : 0].filter((size) => size < upTo);
  return { lastGood: Math.max(0, ...good), upTo, by: first, count };
}

/** Without a checkpoint, only tiles left in their original state can show a rewrite. */
function reportByTiles(
  report: VerificationReport,
  { stored, given, head }: CheckpointTracks,
  difference: Difference | null,
): number | null {
  const good = Math.max(stored.lastGood, given.lastGood, head.lastGood);
  if (!difference?.isToTheEnd || difference.first <= good) return null;
  report.tampered(
    "entries_rewritten",
    `From entry ${difference.first} on, the chain was rewritten: it is consistent, but the tree's tiles still have the hashes of different entries.`,
    difference.first,
  );
  return difference.first;
}

/**
 * @param last The last existing entry
 * @param once Number of entries that existed according to tiles
 * @returns whether there were more entries
 */
export function reportTail(
  report: VerificationReport,
  { stored, given, head }: CheckpointTracks,
  last: number,
  once: number,
): boolean {
  const size = Math.max(stored.beyond, given.beyond, head.beyond, once);
  if (size <= last) return false;
  const which = size === last + 1 ? `Entry ${size} is` : `Entries ${last + 1} to ${size} are`;
  const evidence =
    size === head.beyond
      ? `the last commit signed ${counted(size)}`
      : size === stored.beyond
        ? `a stored checkpoint covers ${counted(size)}`
        : size === given.beyond
          ? `a checkpoint that was kept elsewhere covers ${counted(size)}`
          : `the tree has tiles for ${counted(size)}`;
  report.tampered(
    "tail_missing",
    `${which} missing at the end: there are ${counted(last)} entries, but ${evidence}.`,
    last + 1,
  );
  return true;
}

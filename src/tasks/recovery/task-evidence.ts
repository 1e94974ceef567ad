import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import { ProvenTask } from "../../ledger/reading/proven-task.ts";

/**
 * Reads what the ledger contains about some tasks, starting with the entry `first`. Every entry is verified against
 * the signed tree, at 1 ms for 256.
 * @throws LedgerChanged
 */
export async function readTaskEvidence(
  lists: Pick<LedgerLists, "read">,
  workspaceId: number,
  ids: ReadonlySet<string>,
  first: number,
): Promise<ReadonlyMap<string, ProvenTask>> {
  const found = new Map<string, ProvenTask>();
  const span = { first: Math.max(1, first), last: Number.MAX_SAFE_INTEGER, order: "asc" } as const;
  for await (const entries of lists.read(workspaceId, {}, span)) {
    for (const { seq, bytes } of entries) {
      if (!bytes.includes('"task":')) continue;
      const entry = parsedEntry(bytes);
      if (entry.task === undefined || !ids.has(entry.task)) continue;
      const proven = found.get(entry.task) ?? new ProvenTask();
      found.set(entry.task, proven);
      proven.take(seq, entry);
    }
  }
  return found;
}

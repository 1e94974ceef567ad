import type { LedgerLists } from "../ledger/lists.ts";
import { type ParsedEntry, parsedEntry } from "../ledger/parsed-entry.ts";

/** What the ledger contains about a task that is open in the store. */
export interface ProvenTask {
  /** The intent that dispatched it. */
  dispatch: (ParsedEntry & { readonly seq: number }) | null;
  /** Its end. */
  end: (ParsedEntry & { readonly seq: number }) | null;
  /** Intents of calls without an outcome, by seq. */
  readonly open: Map<number, ParsedEntry>;
  /** All other entries about it, by seq: outcomes of its calls, and refusals. */
  readonly outcomes: Map<number, ParsedEntry>;
}

const DISPATCH = "task.dispatch";

/**
 * Reads what the ledger contains about some tasks, from the entry `first` on. Every entry is verified against the
 * signed tree, at 1 ms for 256.
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
      const proven = found.get(entry.task) ?? {
        dispatch: null,
        end: null,
        open: new Map(),
        outcomes: new Map(),
      };
      found.set(entry.task, proven);
      take(proven, seq, entry);
    }
  }
  return found;
}

function take(proven: ProvenTask, seq: number, entry: ParsedEntry): void {
  const { phase, action, ref } = entry;
  if (phase === "intent" && action === DISPATCH) {
    proven.dispatch ??= { ...entry, seq };
  } else if (phase === "intent") {
    proven.open.set(seq, entry);
  } else {
    proven.outcomes.set(seq, entry);
    if (phase !== "outcome" || ref === undefined) return;
    if (ref === proven.dispatch?.seq) proven.end ??= { ...entry, seq };
    proven.open.delete(ref);
  }
}

import { takeTurn } from "../../base/inflow.ts";
import type { Sql } from "../../store/db.ts";
import { INDEXED, indexKey, OVERSIGHT_KEY } from "./block-index.ts";

/** Conditions on the entries of one workspace, all of which must be met. */
export interface EntryFilter {
  readonly agent?: string | undefined;
  /**
   * RFC 3339 UTC with milliseconds. With `agent`: the time at which that agent was created, which MUST NOT be later
   * than `from`. Entries about earlier agents of the same name do not match.
   */
  readonly agentSince?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly tier?: number | undefined;
  /** RFC 3339 UTC with milliseconds, inclusive. */
  readonly from?: string | undefined;
  /** RFC 3339 UTC with milliseconds, exclusive. */
  readonly to?: string | undefined;
  /** Only entries that name this task. Null means a task that does not exist, so nothing matches. */
  readonly task?: NamedTask | null | undefined;
  /** Only entries that do not name a task. */
  readonly outsideTasks?: true | undefined;
  /** Only entries that involved a person. */
  readonly oversight?: true | undefined;
}

/** The known facts about the task whose entries are requested. */
export interface NamedTask {
  readonly id: string;
  /** The name of the task's agent. */
  readonly agent: string;
  /** Seq of the entry that dispatched the task; no earlier entry names it. Entries may name it long after its end. */
  readonly dispatchSeq: number;
}

/**
 * Entries of these actions may name a task without naming an agent. All others that name a task also name its agent,
 * unless somebody has changed the task's rows.
 */
const WITHOUT_AGENT = ["payload.erase", "task.cancel"] as const;

export interface EntryPage {
  readonly order: "asc" | "desc";
  readonly limit: number;
  /** Entries strictly after this seq in the given order. */
  readonly after?: number | undefined;
  /** Maximum number of reads of the store. Default: `LOOK_LIMIT`. */
  readonly looks?: number;
}

export interface EntryPageRows {
  readonly entries: readonly StoredEntry[];
  /** Where to continue, as `after`; null if nothing is left to read. */
  readonly next: number | null;
}

/** The entries of a workspace (`$1`) after `$2`, up to `$3`, in order. */
export const ENTRIES_BETWEEN =
  "SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq";

export interface StoredEntry {
  readonly seq: number;
  readonly leaf: Uint8Array;
  readonly bytes: string;
}

/**
 * Reads per call. One read returns some entries, scans the index of half a million, or checks some unchecked blocks.
 * Without a limit, a filter with few matches in a chain of many millions would take seconds.
 */
const LOOK_LIMIT = 64;

/**
 * The cost of a read apart from its rows, which take turns themselves: it may scan the index of half a million entries
 * or check blocks. In bytes that are measured in the same time (see `Arrival`).
 */
export const LOOK_COST = 128 * 1024;

/** Collects reads into one page, in order: at most `limit` entries, and where to continue. */
export async function collectPage(
  workspaceId: number,
  looks: AsyncIterable<ScanResult>,
  page: EntryPage,
  signal?: AbortSignal,
): Promise<EntryPageRows> {
  const { limit } = page;
  const found: StoredEntry[] = [];
  let left = page.looks ?? LOOK_LIMIT;
  let reached: number | null = null;
  for await (const look of looks) {
    found.push(...look.entries);
    if (found.length > limit || look.isLast) break;
    left -= 1;
    if (left === 0 || signal?.aborted) {
      reached = look.reached;
      break;
    }
    const turn = takeTurn(workspaceId, { bytes: LOOK_COST });
    if (turn) await turn;
  }
  const entries = found.slice(0, limit);
  const end = entries.at(-1);
  return { entries, next: found.length > limit && end !== undefined ? end.seq : reached };
}

export interface ScanResult {
  readonly entries: readonly StoredEntry[];
  /** The last seq reached. */
  readonly reached: number;
  readonly isLast: boolean;
}

/** Sets of keys: a matching entry has all keys of at least one set. No sets if the index cannot narrow the filter. */
export function waysOf(filter: EntryFilter): (readonly string[])[] {
  const keys = keysOf(filter);
  if (!filter.task) return keys.length === 0 ? [] : [keys];
  const byTask = [
    indexKey("agent", filter.task.agent),
    ...WITHOUT_AGENT.map((action) => indexKey("action", action)),
  ];
  return byTask.map((key) => [...new Set([...keys, key])]);
}

function keysOf(filter: EntryFilter): string[] {
  const keys = filter.oversight ? [OVERSIGHT_KEY] : [];
  for (const field of INDEXED) {
    const value = filter[field];
    if (value !== undefined) keys.push(indexKey(field, value));
  }
  return keys;
}

export async function findEntry(
  db: Pick<Sql, "get">,
  workspaceId: number,
  seq: number,
): Promise<StoredEntry | undefined> {
  return db.get<StoredEntry>("SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq = $2", [
    workspaceId,
    seq,
  ]);
}

/** Number of a workspace's entries: the size of its tree. */
export async function ledgerSize(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ seq: number }>(
    "SELECT seq FROM ledger WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1",
    [workspaceId],
  );
  return row?.seq ?? 0;
}

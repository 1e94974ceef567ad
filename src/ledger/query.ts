import type { Sql } from "../store/db.ts";
import { INDEXED, indexKey, OVERSIGHT_KEY } from "./block-index.ts";

/** Conditions on entries of one workspace; all that are given must hold. */
export interface EntryFilter {
  readonly agent?: string | undefined;
  /**
   * RFC 3339 UTC with milliseconds. With `agent`: when the agent was made that is meant, which MUST be no later than `from`.
   * Entries about earlier agents of its name do not match.
   */
  readonly agentSince?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly tier?: number | undefined;
  /** RFC 3339 UTC with milliseconds, inclusive. */
  readonly from?: string | undefined;
  /** RFC 3339 UTC with milliseconds, exclusive. */
  readonly to?: string | undefined;
  /** Only those that name this task; null: a task that is not there, which no entry names. */
  readonly task?: NamedTask | null | undefined;
  /** Only those in which a person had a hand. */
  readonly oversight?: true | undefined;
}

/** What is known of a task whose entries are looked for. */
export interface NamedTask {
  readonly id: string;
  /** Name of its agent. */
  readonly agent: string;
  /** Seq of the entry that dispatched it: no earlier one names it. What is said of it may come long after its end. */
  readonly dispatchSeq: number;
}

/** Entries of these actions may name a task and no agent; all others that name a task name its agent as well. */
const WITHOUT_AGENT = ["payload.erase", "task.cancel"] as const;

export interface EntryPage {
  readonly order: "asc" | "desc";
  readonly limit: number;
  /** Entries strictly after this seq in the given order. */
  readonly after?: number | undefined;
  /** How often it looks into the store at most. Default: `LOOK_LIMIT`. */
  readonly looks?: number;
}

export interface FoundEntries {
  readonly entries: readonly StoredEntry[];
  /** Where to go on, as `after`; null: nothing is left to look at. */
  readonly next: number | null;
}

export interface StoredEntry {
  readonly seq: number;
  readonly leaf: Uint8Array;
  readonly bytes: string;
}

/**
 * Looks of one call: one reads some entries, or the index of half a million, or checks some blocks that were not checked
 * yet. A filter that matches little in a chain of many millions would hold the call for seconds.
 */
const LOOK_LIMIT = 64;

/** A page of what looks bring, in order: `limit` at most, and where to go on. */
export async function collectPage(
  looks: AsyncIterable<Look>,
  page: EntryPage,
  signal?: AbortSignal,
): Promise<FoundEntries> {
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
    await new Promise((resolve) => setImmediate(resolve));
  }
  const entries = found.slice(0, limit);
  const end = entries.at(-1);
  return { entries, next: found.length > limit && end !== undefined ? end.seq : reached };
}

export interface Look {
  readonly entries: readonly StoredEntry[];
  /** Everything up to here was looked at. */
  readonly reached: number;
  readonly isLast: boolean;
}

/** The sets of keys one of which an entry has that matches, whole. None: the index says nothing of it. */
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

/**
 * A field of an entry, as SQL. Null if the bytes are no JSON: SQLite would refuse the whole query otherwise. The check costs 1 µs
 * an entry.
 */
export function entryField(bytes: string, field: string): string {
  return `CASE WHEN json_valid(${bytes}) THEN ${bytes}->>'${field}' END`;
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

/** Entries of a workspace: the size of its tree. */
export async function ledgerSize(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ seq: number }>(
    "SELECT seq FROM ledger WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1",
    [workspaceId],
  );
  return row?.seq ?? 0;
}

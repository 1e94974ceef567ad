import type { Sql, SqlValue } from "../store/db.ts";
import { INDEXED, indexedInAny, indexKey, OVERSIGHT_KEY, type Span } from "./block-index.ts";
import { tiledSize } from "./tiles.ts";

/** Conditions on entries of one workspace; all that are given must hold. */
export interface EntryFilter {
  readonly agent?: string | undefined;
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
/** Entries that one look reads. */
const AT_ONCE = 256;

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

/**
 * The entries of a span that match, by the index where there is one: `most` at a time at most. The index and the rows are
 * believed as they lie in the file (`lists.ts` checks both before).
 */
export async function* lookThrough(
  db: Pick<Sql, "all" | "get">,
  workspaceId: number,
  filter: EntryFilter,
  wanted: Span,
  most: number,
): AsyncGenerator<Look, void> {
  const { order } = wanted;
  if (filter.task === null) return;
  const span = { ...wanted, first: Math.max(wanted.first, filter.task?.dispatchSeq ?? 1) };
  if (span.first > span.last) return;
  const ways = waysOf(filter);
  // What stands in a block that is not complete yet is in no index: a block's worth of entries at most.
  const indexed = ways.length === 0 ? 0 : Math.min(span.last, await tiledSize(db, workspaceId));
  const [old, recent] = [
    { ...span, last: indexed },
    { ...span, first: Math.max(span.first, indexed + 1) },
  ];
  const parts: (() => AsyncGenerator<Omit<Look, "isLast">, void>)[] = [];
  if (old.first <= old.last) parts.push(() => lookByIndex(db, workspaceId, filter, ways, old, most));
  if (recent.first <= recent.last) parts.push(() => lookInOrder(db, workspaceId, filter, recent, most));
  if (order === "desc") parts.reverse();
  const end = order === "asc" ? span.last : span.first;
  for (const part of parts) {
    for await (const look of part()) yield { ...look, isLast: look.reached === end };
  }
}

async function* lookInOrder(
  db: Pick<Sql, "all">,
  workspaceId: number,
  filter: EntryFilter,
  { first, last, order }: Span,
  most: number,
): AsyncGenerator<Omit<Look, "isLast">, void> {
  const { sql, values } = conditions(filter, 5);
  const statement =
    `SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq >= $2 AND seq <= $3${sql}` +
    ` ORDER BY seq ${order === "asc" ? "ASC" : "DESC"} LIMIT $4`;
  let [low, high] = [first, last];
  while (low <= high) {
    const entries = await db.all<StoredEntry>(statement, [workspaceId, low, high, most, ...values]);
    const end = entries.length < most ? undefined : entries.at(-1)?.seq;
    if (order === "asc") {
      low = (end ?? high) + 1;
      yield { entries, reached: low - 1 };
    } else {
      high = (end ?? low) - 1;
      yield { entries, reached: high + 1 };
    }
  }
}

async function* lookByIndex(
  db: Pick<Sql, "all">,
  workspaceId: number,
  filter: EntryFilter,
  ways: readonly (readonly string[])[],
  span: Span,
  atOnce: number,
): AsyncGenerator<Omit<Look, "isLast">, void> {
  // The index has a task's agent, and not the task: few of the entries that it finds are wanted.
  const most = filter.task ? Math.max(atOnce, AT_ONCE) : atOnce;
  const end = span.order === "asc" ? span.last : span.first;
  const back = span.order === "asc" ? -1 : 1;
  const pending: number[] = [];
  for await (const { found, upTo } of indexedInAny(db, workspaceId, ways, span)) {
    pending.push(...found);
    const isEnd = upTo === end;
    do {
      const part = isEnd || pending.length >= most ? pending.splice(0, most) : [];
      const [following] = pending;
      const entries = await readSome(db, workspaceId, filter, part, span.order);
      yield { entries, reached: following === undefined ? upTo : following + back };
    } while (pending.length >= most || (isEnd && pending.length > 0));
  }
}

/** Values of one `IN`: as many parameters a statement has, the rest of them null. */
const IN_WIDTH = 64;
const IN_PLACES = Array.from({ length: IN_WIDTH }, (_, index) => `$${index + 2}`).join(", ");

/** The entry's own bytes decide: the index only says where to look. */
async function readSome(
  db: Pick<Sql, "all">,
  workspaceId: number,
  filter: EntryFilter,
  seqs: readonly number[],
  order: "asc" | "desc",
): Promise<StoredEntry[]> {
  const { sql, values } = conditions(filter, IN_WIDTH + 2);
  const statement =
    `SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq IN (${IN_PLACES})${sql}` +
    ` ORDER BY seq ${order === "asc" ? "ASC" : "DESC"}`;
  const entries: StoredEntry[] = [];
  for (let from = 0; from < seqs.length; from += IN_WIDTH) {
    const some: (number | null)[] = seqs.slice(from, from + IN_WIDTH);
    while (some.length < IN_WIDTH) some.push(null);
    entries.push(...(await db.all<StoredEntry>(statement, [workspaceId, ...some, ...values])));
  }
  return entries;
}

/** The sets of keys one of which an entry has that matches, whole. None: the index says nothing of it. */
function waysOf(filter: EntryFilter): (readonly string[])[] {
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
 * A field of an entry, as SQL. Null if the bytes are no JSON: SQLite would refuse the whole query otherwise. The check costs 1 µs an
 * entry.
 */
export function entryField(bytes: string, field: string): string {
  return `CASE WHEN json_valid(${bytes}) THEN ${bytes}->>'${field}' END`;
}

/** Of the filter's fields, as SQL; `first` is the number of its first parameter. */
function conditions(
  filter: EntryFilter,
  first: number,
): { readonly sql: string; readonly values: SqlValue[] } {
  const values: SqlValue[] = [];
  let sql = filter.oversight ? ` AND ${entryField("bytes", "oversight")} IS NOT NULL` : "";
  for (const field of INDEXED) {
    const value = filter[field];
    if (value === undefined) continue;
    sql += ` AND ${entryField("bytes", field)} = $${first + values.length}`;
    values.push(value);
  }
  if (filter.task) {
    sql += ` AND ${entryField("bytes", "task")} = $${first + values.length}`;
    values.push(filter.task.id);
  }
  return { sql, values };
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

import type { Db, SqlValue } from "../store/db.ts";

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
}

export interface EntryPage {
  readonly order: "asc" | "desc";
  readonly limit: number;
  /** Entries strictly after this seq in the given order. */
  readonly after?: number | undefined;
  /** Slices looked through at most. Default: `SLICE_LIMIT`. */
  readonly slices?: number;
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
 * Rows looked at in one go. Entries have no secondary index, which would cost each append 12 µs on top of 16 (measured,
 * groups of 64, three indexes); a filter reads slices of the chain instead, and lets other calls in between them.
 */
const SLICE = 4096;

/** Slices of one call: a filter that matches little would walk a chain of millions for one answer. */
const SLICE_LIMIT = 64;

const FIELDS = ["agent", "actor", "action", "tier"] as const;

/**
 * One page of entries that match, in order: `limit` at most. Fewer, or none, also where the search has looked through as
 * many slices as a call may, or `signal` was aborted; it goes on after `next`.
 */
export async function findEntries(
  db: Db,
  workspaceId: number,
  filter: EntryFilter,
  page: EntryPage,
  signal?: AbortSignal,
): Promise<FoundEntries> {
  const last = await lastSeq(db, workspaceId);
  let low = filter.from === undefined ? 1 : await firstAt(db, workspaceId, filter.from, last);
  let high = filter.to === undefined ? last : (await firstAt(db, workspaceId, filter.to, last)) - 1;
  if (page.after !== undefined) {
    if (page.order === "asc") low = Math.max(low, page.after + 1);
    else high = Math.min(high, page.after - 1);
  }
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  for (const field of FIELDS) {
    const value = filter[field];
    if (value === undefined) continue;
    values.push(value);
    conditions.push(` AND bytes->>'${field}' = $${values.length + 4}`);
  }
  const sql =
    `SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq >= $2 AND seq <= $3${conditions.join("")}` +
    ` ORDER BY seq ${page.order === "asc" ? "ASC" : "DESC"} LIMIT $4`;
  const wanted = page.limit + 1;
  const found: StoredEntry[] = [];
  let slices = page.slices ?? SLICE_LIMIT;
  let reached: number | null = null;
  while (low <= high && found.length < wanted) {
    if (slices-- === 0 || signal?.aborted) {
      reached = page.order === "asc" ? low - 1 : high + 1;
      break;
    }
    const from = page.order === "asc" ? low : Math.max(low, high - SLICE + 1);
    const to = page.order === "asc" ? Math.min(high, low + SLICE - 1) : high;
    found.push(
      ...(await db.all<StoredEntry>(sql, [workspaceId, from, to, wanted - found.length, ...values])),
    );
    if (page.order === "asc") low = to + 1;
    else high = from - 1;
    if (low <= high && found.length < wanted) await new Promise((resolve) => setImmediate(resolve));
  }
  const entries = found.slice(0, page.limit);
  const end = entries.at(-1);
  return { entries, next: found.length > page.limit && end !== undefined ? end.seq : reached };
}

export async function findEntry(db: Db, workspaceId: number, seq: number): Promise<StoredEntry | undefined> {
  return db.get<StoredEntry>("SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq = $2", [
    workspaceId,
    seq,
  ]);
}

async function lastSeq(db: Db, workspaceId: number): Promise<number> {
  const row = await db.get<{ seq: number }>(
    "SELECT seq FROM ledger WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1",
    [workspaceId],
  );
  return row?.seq ?? 0;
}

/** The first seq whose time is at or after `time`; `last + 1` when there is none. Times never go backwards. */
async function firstAt(db: Db, workspaceId: number, time: string, last: number): Promise<number> {
  let low = 1;
  let high = last + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = await db.get<{ ts: string }>(
      "SELECT bytes->>'ts' AS ts FROM ledger WHERE workspace_id = $1 AND seq = $2",
      [workspaceId, middle],
    );
    if (row !== undefined && row.ts < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

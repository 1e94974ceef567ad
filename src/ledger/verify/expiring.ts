import type { SqlValue } from "../../store/db.ts";
import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { storedExpiry } from "../expiry.ts";
import { formOf } from "./form.ts";
import type { VerificationReport } from "./report.ts";

const DAY_MS = 86_400_000;

export interface ExpiringParts {
  readonly database: ReadOnlyDatabase;
  readonly workspaceId: number;
  /** Seq of the last entry. */
  readonly last: number;
  /** Milliseconds. */
  readonly now: number;
  readonly report: VerificationReport;
}

/**
 * The last entry whose payloads may already be erased by a run that has not written its record yet; 0 if no run is
 * noted. The note is not covered by the ledger's signature, so it counts only if a server could have written it: it
 * must name existing entries that are as old as it says.
 */
export async function expiringUpTo(parts: ExpiringParts): Promise<number> {
  const { last, report } = parts;
  const run = await noteOf(parts);
  if (run === null) return 0;
  const { upTo, days } = run ?? {};
  if (isCount(upTo) && isCount(days) && upTo <= last && isOldEnough(parts, upTo, days)) return upTo;
  report.tampered(
    "expiry_changed",
    "No server could have written the note about a run that erases texts because of their age: it names entries that do not exist, or are not that old. It was changed or forged.",
  );
  return 0;
}

/** Null if no run is in progress; undefined if the note is invalid. */
async function noteOf({
  database,
  workspaceId,
}: ExpiringParts): Promise<{ readonly upTo?: unknown; readonly days?: unknown } | null | undefined> {
  try {
    const get = async <Row>(sql: string, params?: readonly SqlValue[]) => database.get<Row>(sql, params);
    const noted: unknown = JSON.parse((await storedExpiry({ get }, workspaceId)) ?? '{"run":null}');
    if (typeof noted !== "object" || noted === null || !("run" in noted)) return undefined;
    const { run } = noted;
    return typeof run === "object" ? run : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const ENTRY =
  "SELECT CAST(bytes AS BLOB) AS bytes FROM main.ledger NOT INDEXED WHERE workspace_id = $1 AND seq = $2";

/** When an entry was written according to its bytes, in milliseconds; null if it is missing or unreadable. */
function timeOf(database: ReadOnlyDatabase, workspaceId: number, seq: number): number | null {
  const row = database.get<{ bytes: unknown }>(ENTRY, [workspaceId, seq]);
  const ts = row?.bytes instanceof Uint8Array ? formOf(row.bytes).fields?.ts : undefined;
  const time = typeof ts === "string" ? Date.parse(ts) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

/**
 * Uses the later of the clock and the last entry's time. A server uses its clock, because the last entry of an idle
 * ledger may itself be old.
 */
function isOldEnough(
  { database, workspaceId, last, now }: ExpiringParts,
  upTo: number,
  days: number,
): boolean {
  const written = timeOf(database, workspaceId, upTo);
  // The walk reports unreadable entries.
  if (written === null) return true;
  return written <= Math.max(now, timeOf(database, workspaceId, last) ?? 0) - days * DAY_MS;
}

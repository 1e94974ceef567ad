import { timestamp } from "../base/clock.ts";
import type { Sql, Tx } from "../store/db.ts";
import type { Ledger } from "./ledger.ts";
import type { LedgerLists } from "./reading/lists.ts";

const DAY_MS = 86_400_000;

/** How far a workspace's payloads have been erased because of their age, as noted in the store. */
export interface Expiry {
  /** All payloads up to this entry are erased and recorded; 0 initially. */
  readonly done: number;
  /**
   * A run that has begun to erase and whose entry is not written yet. Until then, only this note accounts for missing
   * payloads up to `upTo`. If the process dies, the next one writes the entry.
   */
  readonly run: ExpiryRun | null;
}

export interface ExpiryRun {
  readonly upTo: number;
  /** The retention in days that the run applies. */
  readonly days: number;
  /** Number of payloads erased so far. */
  readonly payloads: number;
}

const NOTHING: Expiry = { done: 0, run: null };

/**
 * Reads the note. If its seal does not match, it is ignored: the next run starts at the first entry and applies the
 * configured retention.
 */
export async function readExpiry(
  sql: Pick<Sql, "get" | "seals">,
  workspaceId: number,
): Promise<Expiry & { readonly isChanged: boolean }> {
  const row = await sql.get<{ key: string; value: string; seal: Uint8Array | null }>(
    "SELECT key, value, seal FROM meta WHERE key = $1",
    [keyOf(workspaceId)],
  );
  if (!row) return { ...NOTHING, isChanged: false };
  if (!sql.seals.fits("meta", row)) return { ...NOTHING, isChanged: true };
  return { ...(JSON.parse(row.value) as Expiry), isChanged: false };
}

/** The stored note, whoever wrote it; undefined if there is none. */
export async function storedExpiry(sql: Pick<Sql, "get">, workspaceId: number): Promise<string | undefined> {
  const row = await sql.get<{ value: string }>("SELECT value FROM meta WHERE key = $1", [keyOf(workspaceId)]);
  return row?.value;
}

/** MUST run in the transaction that erases the payloads named by the note. */
export function noteExpiry(tx: Tx, workspaceId: number, { done, run }: Expiry): void {
  const note = { key: keyOf(workspaceId), value: JSON.stringify({ done, run }) };
  tx.write(
    `INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3)
     ON CONFLICT (key) DO UPDATE SET value = excluded.value, seal = excluded.seal`,
    [note.key, note.value, tx.seals.of("meta", note)],
  );
}

/** Writes the entry of a finished run, in its last transaction. */
export async function recordExpiry(
  tx: Tx,
  ledger: Ledger,
  workspaceId: number,
  { upTo, days, payloads }: ExpiryRun,
): Promise<void> {
  await ledger.append(tx, workspaceId, {
    phase: "single",
    action: "payload.expire",
    outcome: "succeeded",
    channel: "system",
    actor: "system",
    detail: { payload_days: days, payloads, up_to: upTo },
  });
  noteExpiry(tx, workspaceId, { done: upTo, run: null });
}

/**
 * The last entry older than a number of days, according to entries checked against the signed tree; 0 if there is
 * none.
 */
export async function lastOlderThan(
  lists: Pick<LedgerLists, "span">,
  workspaceId: number,
  days: number,
  now: number,
): Promise<number> {
  return (await lists.span(workspaceId, { to: timestamp(Math.max(0, now - days * DAY_MS)) })).last;
}

/** Deletes the payloads (texts and salts) of a slice of entries. @returns the number deleted */
export function deletePayloadsUpTo(
  tx: Tx,
  workspaceId: number,
  after: number,
  last: number,
): Promise<number> {
  return tx.run("DELETE FROM payloads WHERE workspace_id = $1 AND seq > $2 AND seq <= $3", [
    workspaceId,
    after,
    last,
  ]);
}

function keyOf(workspaceId: number): string {
  return `payload_expiry:${workspaceId}`;
}

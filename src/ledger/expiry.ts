import { timestamp } from "../base/clock.ts";
import type { Sql, Tx } from "../store/db.ts";
import type { Ledger } from "./ledger.ts";
import type { LedgerLists } from "./lists.ts";

const DAY_MS = 86_400_000;

/** How far a workspace's payloads have been erased for their age, as the store remembers it. */
export interface Expiry {
  /** Everything up to this entry is gone, and recorded; 0 at first. */
  readonly done: number;
  /**
   * A run that has begun to erase and whose entry is not written yet. Until it is, this alone accounts for what is missing up
   * to `upTo`: a process that dies meanwhile leaves it to the next one, which writes the entry.
   */
  readonly run: ExpiryRun | null;
}

export interface ExpiryRun {
  readonly upTo: number;
  /** The age in days that it went by. */
  readonly days: number;
  /** Payloads that it has erased so far. */
  readonly payloads: number;
}

const NOTHING: Expiry = { done: 0, run: null };

/**
 * As it was noted. A note that somebody else has written counts as none: the next run begins with the first entry again, and goes
 * by the age that is configured.
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

/** The note as it is stored, whoever has written it; undefined if there is none. */
export async function storedExpiry(sql: Pick<Sql, "get">, workspaceId: number): Promise<string | undefined> {
  const row = await sql.get<{ value: string }>("SELECT value FROM meta WHERE key = $1", [keyOf(workspaceId)]);
  return row?.value;
}

/** MUST stand in the transaction that erases what it says. */
export async function noteExpiry(tx: Tx, workspaceId: number, { done, run }: Expiry): Promise<void> {
  const note = { key: keyOf(workspaceId), value: JSON.stringify({ done, run }) };
  await tx.run(
    `INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3)
     ON CONFLICT (key) DO UPDATE SET value = excluded.value, seal = excluded.seal`,
    [note.key, note.value, tx.seals.of("meta", note)],
  );
}

/** Writes the entry of a run that has ended, in its last transaction. */
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
  await noteExpiry(tx, workspaceId, { done: upTo, run: null });
}

/** The last entry that is older than so many days, by entries that were held against the signed tree; 0 if there is none. */
export async function lastOlderThan(
  lists: Pick<LedgerLists, "span">,
  workspaceId: number,
  days: number,
  now: number,
): Promise<number> {
  return (await lists.span(workspaceId, { to: timestamp(Math.max(0, now - days * DAY_MS)) })).last;
}

/** Deletes the payloads of a slice of entries, texts and salts. @returns how many there were */
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

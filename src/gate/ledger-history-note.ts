import type { EvidenceReader } from "../ledger/reading/evidence.ts";
import type { Sql, Tx } from "../store/db.ts";

/** The stored history. */
export interface HistoryNote {
  /** The entry that it reaches, and that entry's leaf in hex. */
  readonly size: number;
  readonly leaf: string;
  readonly revoked: readonly string[];
  /** Ids with the number of their last rotation. */
  readonly rotations: readonly (readonly [string, number])[];
  /** See `configuredId`. */
  readonly configured: readonly string[];
  /** Ids with the entry that dispatched them. */
  readonly openTasks: readonly (readonly [string, number])[];
  /** Undefined in notes from earlier versions. */
  readonly openCalls?: readonly number[] | undefined;
  readonly openResponses?: readonly number[] | undefined;
  /** Also undefined in notes from earlier versions. */
  readonly floor?: number | undefined;
  readonly highest?: number | undefined;
}

export interface StoredNote {
  readonly note: HistoryNote;
  readonly value: string;
}

/** The stored history, if this program wrote it. */
export async function storedNote(
  sql: Pick<Sql, "get" | "seals">,
  key: string,
): Promise<StoredNote | undefined> {
  const row = await sql.get<{ key: string; value: string; seal: Uint8Array | null }>(
    "SELECT key, value, seal FROM meta WHERE key = $1",
    [key],
  );
  if (!row || !sql.seals.fits("meta", row)) return undefined;
  return { note: JSON.parse(row.value) as HistoryNote, value: row.value };
}

/**
 * Whether a history belongs to this ledger. Each leaf covers all entries before it, so equal leaves mean that the ledger was
 * the same up to there.
 */
export async function isOf(reader: EvidenceReader, { size, leaf }: HistoryNote): Promise<boolean> {
  const entry = await reader.entry(size);
  return entry !== undefined && Buffer.from(entry.leaf).toString("hex") === leaf;
}

/**
 * Stores a history.
 * @param before the value that was stored when the history was compared with it
 * @returns false if another node has stored its history since
 */
export async function writeNote(
  tx: Tx,
  key: string,
  before: string | undefined,
  value: string,
): Promise<boolean> {
  const now = await storedNote(tx, key);
  if (now && now.value !== before) return false;
  tx.write(
    `INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3)
     ON CONFLICT (key) DO UPDATE SET value = excluded.value, seal = excluded.seal`,
    [key, value, tx.seals.of("meta", { key, value })],
  );
  return true;
}

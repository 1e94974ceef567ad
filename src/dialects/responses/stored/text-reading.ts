import { takeTurn } from "../../../base/inflow.ts";
import { isHashOf } from "../../../ledger/payload.ts";
import type { Sql } from "../../../store/db.ts";

/** Reserves memory for text that is read. @throws Problem 429 `rate_limited` */
export type HoldMemory = (bytes: number) => void;

/** Where a text is stored, and its hash as the entry contains it. */
export interface StoredText {
  readonly workspaceId: number;
  readonly seq: number;
  readonly kind: "input" | "output";
  readonly hash: string | undefined;
}

/** A text is in memory twice: as it is stored, and parsed. */
const COPIES = 2;

/** Counts the memory of only the latest text, because each text is dropped before the next one is read. */
export function oneAtATime(hold: HoldMemory): HoldMemory {
  let most = 0;
  return (bytes) => {
    if (bytes <= most) return;
    hold(bytes - most);
    most = bytes;
  };
}

/** Waits for a turn to find a response by its row and its entries. */
export async function takeFindTurn(workspaceId: number): Promise<void> {
  const turn = takeTurn(workspaceId, { bytes: 0, messages: 1 });
  if (turn) await turn;
}

/**
 * Finds and reads a text, and takes a turn for processing it. Undefined if it was erased, or does
 * not match the ledger.
 * @throws whatever `hold` throws
 */
export async function readText(
  sql: Pick<Sql, "get">,
  { workspaceId, seq, kind, hash }: StoredText,
  hold: HoldMemory | undefined,
): Promise<string | undefined> {
  const key = [workspaceId, seq, kind];
  const measured = await sql.get<{ bytes: number }>(
    "SELECT octet_length(body) AS bytes FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
    key,
  );
  if (!measured) return undefined;
  const { bytes } = measured;
  hold?.(bytes * COPIES);
  const row = await sql.get<{ salt: Uint8Array; body: string }>(
    "SELECT salt, body FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
    key,
  );
  if (!row || !isHashOf(hash, row.salt, row.body)) return undefined;
  const toUse = takeTurn(workspaceId, { bytes });
  if (toUse) await toUse;
  return row.body;
}

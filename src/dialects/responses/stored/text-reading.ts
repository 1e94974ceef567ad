import { takeTurn } from "../../../base/inflow.ts";
import { isHashOf } from "../../../ledger/payload.ts";
import type { Sql } from "../../../store/db.ts";

/** Takes memory for texts that are read. @throws Problem 429 `rate_limited` */
export type HoldMemory = (bytes: number) => void;

/** A stored text of an entry, which contains its hash. */
export interface StoredText {
  readonly workspaceId: number;
  readonly seq: number;
  readonly kind: "input" | "output";
  readonly hash: string | undefined;
  readonly bytes: number;
}

/** Texts that are not kept count as memory one at a time: each is dropped before the next one is read. */
export function oneAtATime(hold: HoldMemory): HoldMemory {
  let most = 0;
  return (bytes) => {
    if (bytes <= most) return;
    hold(bytes - most);
    most = bytes;
  };
}

/** Waits for the turn to work on a text of a response. Each text costs as much as a message, however short it is. */
export async function takeTextTurn(workspaceId: number, bytes: number): Promise<void> {
  const turn = takeTurn(workspaceId, { bytes, messages: 1 });
  if (turn) await turn;
}

/** Finds a text without reading it. Undefined if it was erased. */
export async function findText(
  sql: Pick<Sql, "get">,
  text: Omit<StoredText, "bytes">,
): Promise<StoredText | undefined> {
  const row = await sql.get<{ bytes: number }>(
    "SELECT octet_length(body) AS bytes FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
    [text.workspaceId, text.seq, text.kind],
  );
  return row && { ...text, bytes: row.bytes };
}

/**
 * Reads a text in its turn, and takes another turn for what is done with it. Undefined if it was erased, or does not
 * match the ledger.
 * @throws whatever `hold` throws
 */
export async function readText(
  sql: Pick<Sql, "get">,
  { workspaceId, seq, kind, hash, bytes }: StoredText,
  hold: HoldMemory | undefined,
): Promise<string | undefined> {
  hold?.(bytes);
  await takeTextTurn(workspaceId, bytes);
  const row = await sql.get<{ salt: Uint8Array; body: string }>(
    "SELECT salt, body FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
    [workspaceId, seq, kind],
  );
  if (!row || !isHashOf(hash, row.salt, row.body)) return undefined;
  await takeTextTurn(workspaceId, bytes);
  return row.body;
}

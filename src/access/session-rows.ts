import type { Tx } from "../store/db.ts";

/** A session's sealed columns and its seal. */
export interface SessionRow {
  readonly id: string;
  readonly workspace_id: number;
  readonly token_id: string;
  readonly secret_hash: Uint8Array;
  readonly created_at: number;
  readonly expires_at: number;
  readonly seal: Uint8Array | null;
}

export const SESSION_COLUMNS = "id, workspace_id, token_id, secret_hash, created_at, expires_at, seal";

/** Makes a token's sessions end no later than `until`. A session whose seal does not match ends immediately. */
export async function shortenSessions(
  tx: Tx,
  workspaceId: number,
  tokenId: string,
  until: number,
): Promise<void> {
  const rows = await tx.all<SessionRow>(
    `SELECT ${SESSION_COLUMNS} FROM sessions WHERE workspace_id = $1 AND token_id = $2 AND expires_at > $3`,
    [workspaceId, tokenId, until],
  );
  for (const row of rows) {
    if (!tx.seals.fits("sessions", row)) {
      tx.write("DELETE FROM sessions WHERE workspace_id = $1 AND id = $2", [workspaceId, row.id]);
      continue;
    }
    const seal = tx.seals.of("sessions", { ...row, expires_at: until });
    tx.write("UPDATE sessions SET expires_at = $3, seal = $4 WHERE workspace_id = $1 AND id = $2", [
      workspaceId,
      row.id,
      until,
      seal,
    ]);
  }
}

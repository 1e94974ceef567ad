import type { Tokens } from "../access/tokens.ts";
import type { Clock } from "../base/clock.ts";
import type { Db } from "../store/db.ts";
import type { LedgerHistories } from "./ledger-histories.ts";

export interface ReplayedTokensParts {
  readonly db: Db;
  readonly tokens: Pick<Tokens, "changeWith">;
  readonly clock: Pick<Clock, "now">;
  readonly histories: Pick<LedgerHistories, "of">;
}

/**
 * Ends tokens whose rows date from before their revocation or last rotation. Someone restored such a row: its seal
 * matches, since the server once wrote it, but the ledger shows what happened since. MUST be called before any caller is
 * admitted.
 */
export async function endReplayedTokens(
  { db, tokens, clock, histories }: ReplayedTokensParts,
  workspaces: readonly { readonly id: number }[],
): Promise<void> {
  for (const { id: workspaceId } of workspaces) {
    const history = histories.of(workspaceId);
    if (!history.hasEndedTokens) continue;
    const rows = await db.all<{ id: string; rotations: number }>(
      // Reads the table itself, since somebody may have left rows out of an index: SQLite uses no index for `+column`.
      "SELECT id, rotations FROM tokens WHERE +workspace_id = $1 AND +revoked_at IS NULL",
      [workspaceId],
    );
    const replayed = rows.filter((row) => history.isOutdated(row));
    if (replayed.length === 0) continue;
    await db.tx(null, async (tx) => {
      for (const { id } of replayed) {
        tokens.changeWith(tx, { token: id });
        tx.write("UPDATE tokens SET revoked_at = $3, seal = NULL WHERE workspace_id = $1 AND id = $2", [
          workspaceId,
          id,
          clock.now(),
        ]);
        tx.write("DELETE FROM sessions WHERE workspace_id = $1 AND token_id = $2", [workspaceId, id]);
      }
    });
    for (const { id } of replayed) db.seals.report("tokens", { workspace_id: workspaceId, id });
  }
}

import type { Tokens } from "../access/tokens.ts";
import type { Clock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import { TokenHistory, type TokenHistoryParts } from "./token-history.ts";

export interface ReplayedTokensParts extends TokenHistoryParts {
  readonly tokens: Pick<Tokens, "changeWith" | "ended">;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Ends tokens whose rows date from before their revocation or last rotation. Someone restored such a row: its seal
 * matches, since the server once wrote it, but the ledger shows what happened since.
 *
 * A start knows that from entries verified against the signed tree, before anybody is admitted. It reads those since
 * the history was stored last; a changed entry among them may be a revocation, so the start is refused.
 */
export class ReplayedTokens {
  readonly #parts: ReplayedTokensParts;
  readonly #histories = new Map<number, TokenHistory>();

  constructor(parts: ReplayedTokensParts) {
    this.#parts = parts;
    parts.tokens.ended.listen(({ workspaceId, id, rotations }) => {
      const history = this.#of(workspaceId);
      if (rotations === null) history.addRevoked(id);
      else history.addRotated(id, rotations);
    });
  }

  /** MUST be called before any caller is admitted. @throws OperatorError if the ledger was changed */
  async check(workspaces: readonly { readonly id: number; readonly name: string }[]): Promise<void> {
    for (const { id, name } of workspaces) {
      const history = this.#of(id);
      try {
        await history.read();
      } catch (error) {
        if (!(error instanceof LedgerChanged)) throw error;
        throw new OperatorError(
          `the ledger of workspace ${JSON.stringify(name)} was changed (${error.message}), so it cannot show which tokens were revoked`,
          "run `gatehouse ledger verify`, and restore a backup of the data directory; without one, review the tokens and run `gatehouse reseal`",
        );
      }
      if (!history.isEmpty) await this.#endReplayed(id, history);
    }
  }

  /** Stores what has ended lately, so that the next start has less to read. Called regularly. */
  async keepHouse(): Promise<void> {
    for (const history of this.#histories.values()) {
      try {
        await history.keep();
      } catch (error) {
        // The lists report where the ledger was changed.
        if (!(error instanceof LedgerChanged)) throw error;
      }
    }
  }

  /** Whether a configured admin secret was installed once, whatever has happened to its token's row since. */
  wasConfigured(workspaceId: number, id: string): boolean {
    return this.#of(workspaceId).wasConfigured(id);
  }

  /** MUST be called once the entry that names the configured secret is on disk. */
  addConfigured(workspaceId: number, id: string): void {
    this.#of(workspaceId).addConfigured(id);
  }

  /** A workspace that is created while the server runs has no history yet. */
  #of(workspaceId: number): TokenHistory {
    const known = this.#histories.get(workspaceId) ?? new TokenHistory(this.#parts, workspaceId);
    this.#histories.set(workspaceId, known);
    return known;
  }

  async #endReplayed(workspaceId: number, history: TokenHistory): Promise<void> {
    const { db, tokens, clock } = this.#parts;
    const rows = await db.all<{ id: string; rotations: number }>(
      "SELECT id, rotations FROM tokens WHERE workspace_id = $1 AND revoked_at IS NULL",
      [workspaceId],
    );
    const replayed = rows.filter((row) => history.isOutdated(row));
    if (replayed.length === 0) return;
    await db.tx(async (tx) => {
      tokens.changeWith(tx);
      for (const { id } of replayed) {
        await tx.run("UPDATE tokens SET revoked_at = $3, seal = NULL WHERE workspace_id = $1 AND id = $2", [
          workspaceId,
          id,
          clock.now(),
        ]);
        await tx.run("DELETE FROM sessions WHERE workspace_id = $1 AND token_id = $2", [workspaceId, id]);
      }
    });
    for (const { id } of replayed) db.seals.report("tokens", { workspace_id: workspaceId, id });
  }
}

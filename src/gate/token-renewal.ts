import type { Ledger } from "../ledger/ledger.ts";
import type { Db, Tx } from "../store/db.ts";
import { type StoredRow, sealedColumns } from "../store/seals/seals.ts";
import type { LedgerHistories } from "./ledger-histories.ts";

/** The ended tokens of a workspace that are remembered one by one: 1 MB. */
const RENEW_AFTER = 10_000;

export interface TokenRenewalParts {
  readonly db: Db;
  readonly ledger: Pick<Ledger, "append">;
  readonly histories: Pick<LedgerHistories, "of">;
  readonly workspaceIds: () => readonly number[];
  readonly renewAfter?: number;
}

/**
 * Bounds what must be remembered of ended tokens. A row that somebody restores has a matching seal, so the history knows
 * each token that has ended. After many, all valid rows get more rotations than any row has had before, and an entry
 * records that number. Every earlier row is outdated from then on, and the ended tokens need not be known one by one.
 */
export class TokenRenewal {
  readonly #parts: TokenRenewalParts;

  constructor(parts: TokenRenewalParts) {
    this.#parts = parts;
  }

  /** Called regularly. */
  async keepHouse(): Promise<void> {
    const { db, histories, workspaceIds, renewAfter = RENEW_AFTER } = this.#parts;
    for (const workspaceId of workspaceIds()) {
      const { endedTokens } = histories.of(workspaceId);
      // Each row is written and sealed at once, so a renewal must end at least as many tokens as it renews.
      if (endedTokens < renewAfter || endedTokens < (await this.#validTokens(workspaceId))) continue;
      await db.tx((tx) => this.#renew(tx, workspaceId));
    }
  }

  async #validTokens(workspaceId: number): Promise<number> {
    const row = await this.#parts.db.get<{ count: number }>(
      "SELECT COUNT(*) AS count FROM tokens WHERE workspace_id = $1 AND revoked_at IS NULL",
      [workspaceId],
    );
    return row?.count ?? 0;
  }

  async #renew(tx: Tx, workspaceId: number): Promise<void> {
    const { db, ledger, histories } = this.#parts;
    const rows = await tx.all<StoredRow<"tokens"> & { readonly id: string }>(
      // Reads the table itself: a row left out of another index would end.
      `SELECT ${sealedColumns("tokens")} FROM tokens INDEXED BY sqlite_autoindex_tokens_1
       WHERE workspace_id = $1 AND revoked_at IS NULL`,
      [workspaceId],
    );
    // A row that somebody restored or changed is not renewed, and so remains invalid.
    const valid = rows.filter((row) => db.seals.fits("tokens", row));
    const rotations = histories.of(workspaceId).raiseFloor(tx);
    for (const row of valid) {
      const seal = tx.seals.of("tokens", { ...row, rotations });
      const change = "UPDATE tokens SET rotations = $3, seal = $4 WHERE workspace_id = $1 AND id = $2";
      await tx.run(change, [workspaceId, row.id, rotations, seal]);
    }
    await ledger.append(tx, workspaceId, {
      ...{ phase: "single", action: "token.renew", outcome: "succeeded", channel: "system", actor: "system" },
      detail: { floor: rotations, tokens: valid.length },
    });
  }
}

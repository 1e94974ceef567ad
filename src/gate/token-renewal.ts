import type { Ledger } from "../ledger/ledger.ts";
import type { Db, Tx } from "../store/db.ts";
import { type StoredRow, sealedColumns } from "../store/seals/seals.ts";
import type { LedgerHistories } from "./ledger-histories.ts";

/** How many ended tokens of a workspace are remembered individually. They take 1 MB. */
const RENEW_AFTER = 10_000;
/** How many rows are renewed in one turn of the event loop: about 1 ms. */
const ROWS_AT_ONCE = 64;

export interface TokenRenewalParts {
  readonly db: Db;
  readonly ledger: Pick<Ledger, "append">;
  readonly histories: Pick<LedgerHistories, "of">;
  readonly workspaceIds: () => readonly number[];
  readonly renewAfter?: number;
}

/**
 * Bounds the memory for ended tokens. A row that someone restores has a matching seal, so the history must know every
 * token that has ended. Once there are many, all valid rows get more rotations than any row has had before, and an
 * entry records that number. From then on, every earlier row is outdated, and the ended tokens need not be remembered
 * individually.
 */
export class TokenRenewal {
  readonly #parts: TokenRenewalParts;

  constructor(parts: TokenRenewalParts) {
    this.#parts = parts;
  }

  /** Renews the rows if it is time. Called regularly. */
  async keepHouse(): Promise<void> {
    const { db, histories, workspaceIds, renewAfter = RENEW_AFTER } = this.#parts;
    for (const workspaceId of workspaceIds()) {
      const { endedTokens } = histories.of(workspaceId);
      // All valid rows are written and sealed at once, so a renewal is worthwhile only if at least as many tokens
      // have ended as it renews.
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
      // Reads the table itself: a row that is missing from another index would not be renewed, and would become
      // invalid.
      `SELECT ${sealedColumns("tokens")} FROM tokens INDEXED BY sqlite_autoindex_tokens_1
       WHERE workspace_id = $1 AND revoked_at IS NULL`,
      [workspaceId],
    );
    // A row that someone restored or changed is not renewed, so it stays invalid.
    const valid = rows.filter((row) => db.seals.fits("tokens", row));
    const rotations = histories.of(workspaceId).raiseFloor(tx);
    for (const [index, row] of valid.entries()) {
      // Others read in between. They do not see an unfinished transaction.
      if (index % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
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

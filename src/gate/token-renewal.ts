import type { Ledger } from "../ledger/ledger.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import { type StoredRow, sealedColumns } from "../store/seals/seals.ts";
import type { LedgerHistories } from "./ledger-histories.ts";

/**
 * How many ended tokens of a workspace are remembered individually. They take 1 MB, and are twice as many as a workspace
 * may have valid tokens, which are all written again.
 */
const RENEW_AFTER = 10_000;
/** How many rows are checked in one turn of the event loop. */
const ROWS_AT_ONCE = 256;

type TokenRow = StoredRow<"tokens"> & { readonly id: string };

export interface TokenRenewalParts {
  readonly db: Db;
  readonly ledger: Pick<Ledger, "append">;
  readonly histories: Pick<LedgerHistories, "of" | "isOutdated">;
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
      if (histories.of(workspaceId).endedTokens < renewAfter) continue;
      const valid = await this.#validRows(workspaceId);
      await db.tx(workspaceId, (tx) => this.#renew(tx, workspaceId, valid));
    }
  }

  /** Checks the rows before the transaction, in turns: checking takes longer than writing. */
  async #validRows(workspaceId: number): Promise<ReadonlySet<string>> {
    const { db } = this.#parts;
    const valid = new Set<string>();
    for (const [index, row] of (await rowsOf(db, workspaceId)).entries()) {
      if (index % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
      if (db.seals.fits("tokens", row)) valid.add(JSON.stringify(row));
    }
    return valid;
  }

  /** @param checked rows that are valid unless they have changed since */
  async #renew(tx: Tx, workspaceId: number, checked: ReadonlySet<string>): Promise<void> {
    const { db, ledger, histories } = this.#parts;
    const rows = await rowsOf(tx, workspaceId);
    // A row that someone restored or changed is not renewed, so it stays invalid.
    const isUnchanged = (row: TokenRow) => !histories.isOutdated(row) && checked.has(JSON.stringify(row));
    const valid = rows.filter((row) => isUnchanged(row) || db.seals.fits("tokens", row));
    const rotations = await histories.of(workspaceId).raiseFloor(tx);
    for (const row of valid) {
      const seal = tx.seals.of("tokens", { ...row, rotations });
      const change = "UPDATE tokens SET rotations = $3, seal = $4 WHERE workspace_id = $1 AND id = $2";
      tx.write(change, [workspaceId, row.id, rotations, seal]);
    }
    await ledger.append(tx, workspaceId, {
      ...{ phase: "single", action: "token.renew", outcome: "succeeded", channel: "system", actor: "system" },
      detail: { floor: rotations, tokens: valid.length },
    });
  }
}

/**
 * All rows of tokens that have not been revoked. Reads the table itself: a row that is missing from another index would
 * not be renewed, and would become invalid. SQLite uses no index for `+column`.
 */
function rowsOf(sql: Pick<Sql, "all">, workspaceId: number): Promise<TokenRow[]> {
  return sql.all(
    `SELECT ${sealedColumns("tokens")} FROM tokens WHERE +workspace_id = $1 AND +revoked_at IS NULL`,
    [workspaceId],
  );
}

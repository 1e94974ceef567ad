import { OperatorError } from "../base/errors.ts";
import { Signal } from "../base/signal.ts";
import { type LedgerFaults, reportChanged } from "../ledger/faults.ts";
import type { Ledger, LedgerGrowth } from "../ledger/ledger.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { SealedRow } from "../store/seals/seals.ts";
import { type HistoryEntry, LedgerHistory, type LedgerHistoryParts } from "./ledger-history.ts";

type TokenColumn = "workspace_id" | "id" | "rotations";

export interface TakenEntry {
  readonly workspaceId: number;
  readonly seq: number;
  readonly entry: HistoryEntry;
}

export interface LedgerHistoriesParts extends Omit<LedgerHistoryParts, "onTake"> {
  readonly ledger: Pick<Ledger, "appended">;
  /** Emits ledgers to which other nodes have appended. Absent if there are none. */
  readonly grownElsewhere?: Signal<LedgerGrowth>;
  readonly faults?: Pick<LedgerFaults, "report">;
}

/**
 * The histories of all workspaces. They include what this process has appended, and soon what other nodes have appended.
 * Work for which that is not enough calls `catchUp` first.
 */
export class LedgerHistories {
  /** Emits each entry that is taken into account, in the order of its ledger, whichever node appended it. */
  readonly taken = new Signal<TakenEntry>();
  readonly #parts: LedgerHistoriesParts & LedgerHistoryParts;
  readonly #histories = new Map<number, LedgerHistory>();

  constructor(parts: LedgerHistoriesParts) {
    const onTake = (workspaceId: number, seq: number, entry: HistoryEntry) =>
      this.taken.emit({ workspaceId, seq, entry });
    this.#parts = { ...parts, onTake };
    parts.ledger.appended.listen(({ workspaceId, seq, draft }) => this.of(workspaceId).take(seq, draft));
    parts.grownElsewhere?.listen((grown) => void this.#follow(grown));
  }

  /**
   * Reads what earlier processes recorded. A changed entry may be a revocation, so it is not skipped. MUST be called
   * before any caller is admitted.
   * @throws OperatorError if the ledger was changed
   */
  async read(workspaces: readonly { readonly id: number; readonly name: string }[]): Promise<void> {
    for (const { id, name } of workspaces) {
      try {
        await this.of(id).read();
      } catch (error) {
        if (!(error instanceof LedgerChanged)) throw error;
        throw new OperatorError(
          `the ledger of workspace ${JSON.stringify(name)} was changed (${error.message}), so it cannot show which tokens were revoked`,
          "run `gatehouse ledger verify`, and restore a backup of the data directory; without one, review the tokens and run `gatehouse reseal`",
        );
      }
    }
  }

  /** A workspace that is created while the server runs begins with an empty history. */
  of(workspaceId: number): LedgerHistory {
    const known = this.#histories.get(workspaceId) ?? new LedgerHistory(this.#parts, workspaceId);
    this.#histories.set(workspaceId, known);
    return known;
  }

  /**
   * Resolves once a workspace's history includes all entries that are on disk, whichever node appended them. MUST be
   * called before anything is decided by what a history lacks.
   * @throws LedgerChanged if an entry that the history needs was changed; it is reported
   * @throws StoreUnavailable
   */
  async catchUp(workspaceId: number): Promise<void> {
    try {
      await this.of(workspaceId).catchUp();
    } catch (error) {
      if (this.#parts.faults) reportChanged(this.#parts.faults, workspaceId, error);
      throw error;
    }
  }

  /** Whether a token's row dates from before its revocation or its last rotation. */
  isOutdated({ workspace_id: workspaceId, id, rotations }: Pick<SealedRow<"tokens">, TokenColumn>): boolean {
    if (typeof workspaceId !== "number" || typeof id !== "string") return false;
    return this.of(workspaceId).isOutdated({ id, rotations: Number(rotations) });
  }

  /** Stores recent history, so that the next start has less to read. Called regularly. */
  async keepHouse(): Promise<void> {
    for (const history of this.#histories.values()) {
      try {
        await history.keep();
      } catch (error) {
        // Lists report where the ledger was changed.
        if (!(error instanceof LedgerChanged)) throw error;
      }
    }
  }

  /** Never rejects: it is tried again when the ledger has grown again. */
  async #follow({ workspaceId, size }: LedgerGrowth): Promise<void> {
    if (this.of(workspaceId).covers(size)) return;
    try {
      await this.catchUp(workspaceId);
    } catch (error) {
      if (error instanceof LedgerChanged || error instanceof StoreUnavailable) return;
      this.#parts.log.error("the entries of other nodes cannot be read", { workspace: workspaceId, error });
    }
  }
}

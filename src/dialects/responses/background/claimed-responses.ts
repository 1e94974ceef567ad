import { isId } from "../../../base/ids.ts";
import { CallInterruption } from "../../../gate/direct/running-calls.ts";
import type { LedgerHistories } from "../../../gate/ledger-histories.ts";
import { LedgerChanged } from "../../../ledger/ledger-changed.ts";
import type { Db } from "../../../store/db.ts";
import type { ClaimedWork } from "../../../tasks/claims/claimed-work.ts";
import type { TaskClaims, WorkKey } from "../../../tasks/claims/claims.ts";
import type { Scheduler } from "../../../tasks/queue/scheduler.ts";
import { findResponse } from "../stored/rows.ts";
import type { ResponseStore } from "../stored/store.ts";
import type { ResponseEndings } from "./endings.ts";
import type { OpenResponses } from "./open-responses.ts";

export interface ClaimedResponsesParts {
  readonly db: Db;
  readonly claims: TaskClaims;
  readonly store: Pick<ResponseStore, "readDispatch">;
  readonly scheduler: Pick<Scheduler, "remove">;
  readonly histories: Pick<LedgerHistories, "of" | "catchUp">;
  /** Queues the responses that these entries dispatched. */
  recover(workspaceId: number, seqs: readonly number[]): Promise<void>;
}

/** The background responses that this node has claimed, as other nodes take them and give them. */
export class ClaimedResponses implements ClaimedWork {
  readonly #parts: ClaimedResponsesParts;
  readonly #open: OpenResponses;
  readonly #endings: Pick<ResponseEndings, "release">;

  constructor(parts: ClaimedResponsesParts, open: OpenResponses, endings: Pick<ResponseEndings, "release">) {
    this.#parts = parts;
    this.#open = open;
    this.#endings = endings;
  }

  names(id: string): boolean {
    return isId("resp", id);
  }

  knows(_: number, id: string): boolean {
    return this.#open.get(id) !== undefined;
  }

  get size(): number {
    return this.#open.size;
  }

  all(): readonly WorkKey[] {
    return this.#open.all().filter(({ dispatchSeq }) => dispatchSeq > 0);
  }

  async openIds(workspaceId: number): Promise<readonly string[]> {
    const { histories, store } = this.#parts;
    await histories.catchUp(workspaceId);
    const ids: string[] = [];
    for (const seq of [...histories.of(workspaceId).openResponses]) {
      const found = await store.readDispatch(workspaceId, seq);
      if (found) ids.push(found.id);
    }
    return ids;
  }

  async adopt(workspaceId: number, ids: readonly string[]): Promise<readonly string[]> {
    const { claims, db, histories } = this.#parts;
    try {
      await histories.catchUp(workspaceId);
      const seqs: number[] = [];
      const gone: string[] = [];
      for (const id of ids) {
        const seq = await this.#dispatchOf(workspaceId, id);
        if (seq === undefined) gone.push(id);
        else seqs.push(seq);
      }
      if (gone.length > 0) {
        await db.tx(null, async (tx) => {
          for (const id of gone) claims.end(tx, workspaceId, id);
        });
      }
      await this.#parts.recover(workspaceId, seqs);
      return [];
    } catch (error) {
      if (!(error instanceof LedgerChanged)) throw error;
      return ids;
    }
  }

  /** No person decides about responses. */
  async resume(): Promise<boolean> {
    return true;
  }

  async handOver(workspaceId: number, id: string, to: string): Promise<void> {
    const open = this.#open.get(id);
    if (!open || open.end || open.dispatchSeq === 0) return;
    open.givenTo = to;
    if (this.#parts.scheduler.remove(workspaceId, id)) await this.#endings.release(open);
    else open.abort.abort(new CallInterruption("shutdown"));
    await open.forgotten.promise;
  }

  forget(_: number, id: string): void {
    this.#open.get(id)?.abort.abort(new CallInterruption("shutdown"));
  }

  /** Stops find the responses among the calls in flight. */
  async endStopped(): Promise<void> {}

  /** The entry that dispatched an open response. The row leads to it, and the ledger decides. */
  async #dispatchOf(workspaceId: number, id: string): Promise<number | undefined> {
    const { db, histories, store } = this.#parts;
    const { openResponses } = histories.of(workspaceId);
    const row = await findResponse(db, workspaceId, id);
    const isDispatch = async (seq: number) => (await store.readDispatch(workspaceId, seq))?.id === id;
    if (row && openResponses.has(row.requestSeq) && (await isDispatch(row.requestSeq))) return row.requestSeq;
    for (const seq of [...openResponses]) if (await isDispatch(seq)) return seq;
    return undefined;
  }
}

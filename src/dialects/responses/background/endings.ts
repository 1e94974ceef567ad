import type { Log } from "../../../base/log.ts";
import type { LateOutcomes } from "../../../gate/direct/late-outcomes.ts";
import type { Ledger } from "../../../ledger/ledger.ts";
import type { ParsedEntry } from "../../../ledger/reading/parsed-entry.ts";
import { FairSlots } from "../../../limits/fair-slots.ts";
import { StoreUnavailable } from "../../../store/db.ts";
import { ClaimLost, type TaskClaims } from "../../../tasks/claims/claims.ts";
import type { EventHub } from "../../../tasks/events/hub.ts";
import type { EventLog } from "../../../tasks/events/log.ts";
import { endDispatched, undoAttempt } from "../stored/rows.ts";
import type { ResponseStore } from "../stored/store.ts";
import { saveEnd, saveLog } from "./journal.ts";
import { endDraft, endOf, isShutdown, type OpenResponse, type ResponseFailure } from "./open-response.ts";
import type { OpenResponses } from "./open-responses.ts";

export interface ResponseEndingsParts {
  readonly claims: TaskClaims;
  readonly ledger: Ledger;
  readonly store: Pick<ResponseStore, "readDispatch">;
  readonly hub: EventHub;
  readonly late: Pick<LateOutcomes, "keep">;
  readonly log: Log;
}

/**
 * The maximum number of queued responses ended at once. A stop may end 10,000 of them in each workspace, and each end
 * reads the ledger.
 */
const AT_ONCE = 64;
/** Kept for workspaces without such ends, so that theirs do not wait for another workspace's stop. */
const KEPT_FOR_OTHERS = 16;

/** Writes the ends of background responses that have no answer. */
export class ResponseEndings {
  readonly #parts: ResponseEndingsParts;
  readonly #open: OpenResponses;
  readonly #turns = new FairSlots({
    ...{ slots: AT_ONCE, keptForOthers: KEPT_FOR_OTHERS },
    // The queue's own limit applies.
    ...{ waitingPerWorkspace: Infinity, waiting: Infinity },
  });

  constructor(parts: ResponseEndingsParts, open: OpenResponses) {
    this.#parts = parts;
    this.#open = open;
  }

  /**
   * Ends a response that has run, or leaves it to the next start. At once, since it keeps its slot until then. Never
   * rejects.
   */
  async end(open: OpenResponse, failure: ResponseFailure | null): Promise<void> {
    const { signal } = open.abort;
    const isDraining = !signal.aborted && failure?.code === "draining";
    if (isDraining || isShutdown(signal)) return this.#leaveToNextStart(open);
    if (open.end) return;
    open.end = endOf(signal, failure);
    await this.#finish(open, this.#parts.hub.find(open.id));
  }

  /** Ends a response that was aborted before it ran. Readers get its end at once; it is written in turn. Never rejects. */
  async endQueued(open: OpenResponse): Promise<void> {
    if (isShutdown(open.abort.signal)) return this.#leaveToNextStart(open);
    if (open.end) return;
    open.end = endOf(open.abort.signal, null);
    // Fetched now, so that closing the log later does not change what is stored.
    const events = this.#parts.hub.find(open.id);
    const leave = await this.#turns.enter(open.workspaceId);
    await this.#finish(open, events);
    leave?.();
  }

  /** Never rejects. */
  async #finish(open: OpenResponse, events: EventLog | undefined): Promise<void> {
    const { store, late, log } = this.#parts;
    const { workspaceId, id, dispatchSeq } = open;
    try {
      const found = await store.readDispatch(workspaceId, dispatchSeq);
      if (!found) throw new Error("the entry that dispatched a response cannot be read");
      const write = async () => {
        try {
          await this.#write(open, found.entry, events);
        } catch (error) {
          if (!(error instanceof ClaimLost)) throw error;
          // Another node goes on with it.
          if (open.end?.status === "cancelled")
            log.error("a response goes on elsewhere before its cancel was written", { response: id });
        }
        this.#open.forget(open);
      };
      await write().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
        log.error("the end of a response cannot be recorded yet", { response: id, error });
        this.#open.defer(open);
        late.keep({ workspaceId, intent: dispatchSeq, write });
      });
    } catch (error) {
      log.error("the end of a response is left to the next start", { response: id, error });
      this.#open.forget(open);
    }
  }

  async #write(open: OpenResponse, entry: ParsedEntry, events: EventLog | undefined): Promise<void> {
    const { claims, ledger } = this.#parts;
    const { workspaceId, id, end } = open;
    if (!end) throw new Error("a response without an end was ended");
    const output = JSON.stringify(end);
    await open.db.tx(workspaceId, async (tx) => {
      const draft = endDraft(entry, open, { outcome: end.status, code: end.error?.code, output });
      const outcomeSeq = await ledger.append(tx, workspaceId, draft);
      endDispatched(tx, workspaceId, { id, outcomeSeq, bytes: Buffer.byteLength(output) }, end);
      if (events) await saveEnd(tx, open, events);
      claims.end(tx, workspaceId, id);
    });
  }

  /** Gives a response that is not running to another node. Never rejects. */
  async release(open: OpenResponse): Promise<void> {
    const { claims, log } = this.#parts;
    const { workspaceId, id, givenTo } = open;
    try {
      await open.db.tx(null, async (tx) => claims.release(tx, [{ workspaceId, id }], givenTo), {
        turnOf: workspaceId,
      });
    } catch (error) {
      if (!(error instanceof ClaimLost)) {
        log.warn("a response cannot be given to other nodes yet", { response: id, error });
      }
    }
    this.#open.forget(open);
  }

  /** Leaves an interrupted response to another node or to the next start, and stores the events that readers have seen. */
  async #leaveToNextStart(open: OpenResponse): Promise<void> {
    const { claims, hub, log } = this.#parts;
    const { workspaceId, id } = open;
    const events = hub.find(id);
    try {
      await open.db.tx(
        null,
        async (tx) => {
          undoAttempt(tx, workspaceId, id);
          if (events) await saveLog(tx, open, events);
          claims.release(tx, [{ workspaceId, id }], open.givenTo);
        },
        { turnOf: workspaceId },
      );
    } catch (error) {
      if (!(error instanceof ClaimLost)) {
        log.warn("the events of an interrupted response cannot be stored", { response: id, error });
      }
    }
    const { signal } = open.abort;
    if (isShutdown(signal) || claims.isShared) this.#open.forget(open);
    else if (signal.aborted) await this.end(open, null);
    else this.#open.leaveToNextStart(open);
  }
}

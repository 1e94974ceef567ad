import { agentAt } from "../../../access/agent-at.ts";
import type { Agents } from "../../../access/agents.ts";
import type { Workspaces } from "../../../access/workspaces.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Ids } from "../../../base/ids.ts";
import type { Log } from "../../../base/log.ts";
import type { Call } from "../../../gate/call.ts";
import type { DirectCallRecords } from "../../../gate/direct/open.ts";
import { CallInterruption } from "../../../gate/direct/running-calls.ts";
import type { LedgerHistories } from "../../../gate/ledger-histories.ts";
import { LedgerChanged } from "../../../ledger/ledger-changed.ts";
import type { ParsedEntry } from "../../../ledger/reading/parsed-entry.ts";
import { StoreUnavailable } from "../../../store/db.ts";
import { type EventReader, TaskEventHub } from "../../../tasks/events/hub.ts";
import type { EventLog } from "../../../tasks/events/log.ts";
import { RESPONSE_EVENTS } from "../../../tasks/events/store.ts";
import type { QueuedTask, Scheduler } from "../../../tasks/queue/scheduler.ts";
import { callingAgent } from "../../calling-agent.ts";
import { field, isMembers, type Members, parsedOrNothing } from "../../json.ts";
import type { ModelCalls } from "../../model-calls.ts";
import { unsupported } from "../../translation/unsupported.ts";
import type { ResponsesClient } from "../client-requests.ts";
import { asStream, type ReadResponsesRequest, readResponsesRequest } from "../request.ts";
import type { OwnedResponse } from "../stored/owned-response.ts";
import { endDispatched, keepDispatched, undoAttempt } from "../stored/rows.ts";
import type { ResponseOwner } from "../stored/store.ts";
import type { HoldMemory } from "../stored/text-reading.ts";
import { type ResponseFailure, unansweredResponse } from "./forms.ts";
import { lastStoredEvent, nextAttemptsEvent, saveLog } from "./journal.ts";
import {
  CANCELLED,
  endDraft,
  endOfAborted,
  isShutdown,
  type OpenResponse,
  type ResponseEnd,
} from "./open-response.ts";
import { responseEvents } from "./read-events.ts";
import { type ResponseRunParts, runResponse } from "./run.ts";

export interface BackgroundParts extends ResponseRunParts {
  readonly modelCalls: Pick<ModelCalls, "serve" | "run" | "check">;
  readonly scheduler: Pick<Scheduler, "reserve" | "enqueueAll" | "remove">;
  readonly direct: Pick<DirectCallRecords, "running" | "late">;
  readonly histories: Pick<LedgerHistories, "of">;
  readonly workspaces: Pick<Workspaces, "list">;
  readonly agents: Agents;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** A response that was accepted and is made in the background. */
export interface DispatchedResponse {
  readonly id: string;
  /** The entry that dispatched it. */
  readonly seq: number;
  /** The response, which is queued. */
  readonly response: Members;
  /** Reads its events, if it was requested as a stream. */
  readonly events: EventReader | null;
}

/** Stands for callers that act as no agent. Agents' ids begin at 1. */
const NO_AGENT = 0;
/** The id of the first event that a run publishes: 1 is derived from the request. */
const FIRST_EVENT = 2;

/**
 * Responses in the background. They run durably, as tasks do: one that is dispatched is in the ledger, waits for a
 * slot among the tasks, and is begun again by the next start if the process dies before its end is written. Which
 * responses have not ended is read from the ledger, never from rows.
 */
export class BackgroundResponses {
  readonly #parts: BackgroundParts;
  readonly #hub: TaskEventHub;
  readonly #open = new Map<string, OpenResponse>();

  constructor(parts: BackgroundParts) {
    this.#parts = parts;
    this.#hub = new TaskEventHub(parts.db, RESPONSE_EVENTS);
  }

  /**
   * Checks a request, makes it durable and queues it.
   * @throws Problem as `ModelCalls.run` does before it sends anything; nothing is written then
   */
  async dispatch(
    call: Call,
    client: ResponsesClient,
    request: ReadResponsesRequest,
  ): Promise<DispatchedResponse> {
    const { modelCalls, requests, agents, scheduler, ids, clock } = this.#parts;
    const { workspaceId } = call.caller;
    const { model, isStream } = request;
    if (!isStream) await call.count();
    const sent = { ...client, ...asStream(request) };
    await modelCalls.check(call, requests.prepare(call, sent, readResponsesRequest(sent.bytes, sent.value)));
    const agent = await callingAgent(agents, call, client.headers);
    const agentId = agent?.id ?? null;
    const id = ids("resp");
    const detail = { dialect: "responses", response: id, ...(isStream ? { stream: 1 } : {}) };
    call.about({ action: "response.dispatch", detail });
    const createdAt = clock.now();
    const place = scheduler.reserve(workspaceId);
    try {
      const input = Buffer.from(client.bytes).toString();
      const seq = await call.commit(async (tx, record) => {
        const requestSeq = await record({ phase: "intent", outcome: "allowed", input });
        await keepDispatched(tx, workspaceId, { id, agentId, model, requestSeq, createdAt });
        return requestSeq;
      });
      if (isStream) this.#hub.open(id, FIRST_EVENT);
      const open = this.#add({ workspaceId, id, agentId, dispatchSeq: seq, via: call.via });
      const response = unansweredResponse(client.value, { id, model, createdAt }, QUEUED);
      // Opened before the response can end.
      const events = isStream ? this.#read({ workspaceId, agent }, response, 0) : null;
      place.enqueue(this.#queued(open));
      return { id, seq, response, events };
    } catch (error) {
      place.release();
      throw error;
    }
  }

  /**
   * Reads the events of a response after the id `after`.
   * @param hold called with the bytes of the texts that are read
   * @throws Problem 404 `not_found`, 400 `unsupported_parameter` if it was not requested as a stream
   */
  async read(
    owner: ResponseOwner,
    response: OwnedResponse,
    after: number,
    hold: HoldMemory,
  ): Promise<EventReader> {
    const { row } = response;
    const request = row.attempts === null ? null : await response.readRequest(hold);
    if (field(request, "stream") !== true) {
      throw unsupported(
        "stream",
        "is possible only for a response that was made in the background as a stream.",
      );
    }
    return this.#read(owner, unansweredResponse(request, row, QUEUED), after);
  }

  /** The response as it ended, if that cannot be written yet. */
  unwritten(id: string): Members | null {
    return this.#open.get(id)?.end ?? null;
  }

  /**
   * Cancels a response, if it has not ended. If the store cannot be written, its end and the call's entry are written
   * later.
   */
  async cancel(call: Call, id: string): Promise<void> {
    const open = this.#open.get(id);
    if (!open || open.end) return;
    const decision = await call.decide("cancel", this.#parts.clock);
    await this.end(id);
    await call.commitDecision(decision, async () => {});
  }

  /** Ends a response, if it has not ended. Resolves when its end is written or put off. */
  async end(id: string): Promise<void> {
    const open = this.#open.get(id);
    open?.abort.abort(CANCELLED);
    await open?.left.promise;
  }

  /** Queues the responses that earlier processes have not ended. Called once, before requests are served. */
  async start(): Promise<void> {
    const { workspaces, histories, scheduler, log } = this.#parts;
    for (const { id: workspaceId } of workspaces.list()) {
      const queued: QueuedTask[] = [];
      for (const seq of [...histories.of(workspaceId).openResponses]) {
        try {
          const open = await this.#recover(workspaceId, seq);
          if (open) queued.push(this.#queued(open));
        } catch (error) {
          if (!(error instanceof LedgerChanged)) throw error;
          log.error("a response is not begun again, because the ledger was changed", {
            workspaceId,
            seq,
            error,
          });
        }
      }
      scheduler.enqueueAll(queued);
    }
  }

  /** Interrupts all responses, which the next start begins again. Resolves when nothing writes any more. */
  async stop(): Promise<void> {
    const all = [...this.#open.values()];
    for (const { abort } of all) abort.abort(new CallInterruption("shutdown"));
    await Promise.all(all.map(({ left }) => left.promise));
  }

  /**
   * Resolves when the ends of all responses stopped in a workspace, or of one of its agents, are written.
   * @throws StoreUnavailable if the store refuses one of them
   */
  async endsWritten(workspaceId: number, agentId: number | null): Promise<void> {
    const stopped = [...this.#open.values()].filter(
      (open) =>
        open.abort.signal.aborted &&
        open.workspaceId === workspaceId &&
        (agentId === null || open.agentId === agentId),
    );
    await Promise.all(stopped.map(({ left }) => left.promise));
    if (stopped.some(({ id }) => this.#open.has(id))) {
      throw new StoreUnavailable("the ends of stopped responses cannot be written yet");
    }
  }

  async #recover(workspaceId: number, dispatchSeq: number): Promise<OpenResponse | null> {
    const { db, store, clock } = this.#parts;
    const found = await store.readDispatch(workspaceId, dispatchSeq);
    if (!found) return null;
    const { id, entry } = found;
    const createdAt = entry.ts === undefined ? clock.now() : Date.parse(entry.ts);
    const agent = await agentAt(db, workspaceId, entry.agent, createdAt);
    const agentId = agent?.id ?? null;
    const row = { id, agentId, model: entry.model ?? "", requestSeq: dispatchSeq, createdAt };
    await db.tx((tx) => keepDispatched(tx, workspaceId, row), { single: true });
    if (entry.detail?.stream === 1) this.#hub.open(id, await nextAttemptsEvent(db, workspaceId, id));
    return this.#add({ workspaceId, id, agentId, dispatchSeq, via: [] });
  }

  #add(response: Pick<OpenResponse, "workspaceId" | "id" | "agentId" | "dispatchSeq" | "via">): OpenResponse {
    const abort = new AbortController();
    const wait = new AbortController();
    const left = Promise.withResolvers<void>();
    const open: OpenResponse = { ...response, abort, wait, left, isAnswered: false, end: null };
    this.#open.set(open.id, open);
    const { workspaceId, agentId } = open;
    const unregister = this.#parts.direct.running.add({ workspaceId, agentId, abort, wait });
    void left.promise.then(unregister);
    // While it runs, the run itself notices.
    abort.signal.addEventListener("abort", () => {
      if (!this.#parts.scheduler.remove(workspaceId, open.id)) return;
      if (isShutdown(abort.signal)) this.#leave(open);
      else void this.#end(open, null);
    });
    wait.signal.addEventListener("abort", () => {
      if (this.#parts.scheduler.remove(workspaceId, open.id)) this.#leave(open);
    });
    return open;
  }

  #queued(open: OpenResponse): QueuedTask {
    const { workspaceId, id, agentId } = open;
    return { workspaceId, taskId: id, agentId: agentId ?? NO_AGENT, call: () => this.#run(open) };
  }

  /** Never rejects. */
  async #run(open: OpenResponse): Promise<void> {
    const { store } = this.#parts;
    let failure: ResponseFailure | null = null;
    try {
      const found = await store.readDispatch(open.workspaceId, open.dispatchSeq);
      if (!found) throw new Error("the entry that dispatched a response cannot be read");
      failure = await runResponse(this.#parts, open, found.entry, this.#hub.find(open.id));
    } catch (error) {
      failure = INTERNAL;
      this.#parts.log.error("a response in the background failed", { response: open.id, error });
    }
    if (open.isAnswered) this.#leave(open);
    else await this.#end(open, failure);
  }

  /** Writes the end of a response without an answer. Never rejects. */
  async #end(open: OpenResponse, failure: ResponseFailure | null): Promise<void> {
    const { signal } = open.abort;
    const isDraining = failure?.code === "draining";
    if (isDraining || isShutdown(signal)) return this.#putBack(open);
    const end = signal.aborted ? endOfAborted(signal, failure) : endOfFailed(failure);
    const { direct, log } = this.#parts;
    const { id, dispatchSeq } = open;
    try {
      const { entry, response } = await this.#endedForm(open, end);
      open.end = response;
      const events = this.#hub.find(id);
      const write = () => this.#write(open, entry, end, events);
      try {
        await write();
        this.#leave(open);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        log.error("the end of a response cannot be recorded yet", { response: id, error });
        this.#endReading(open);
        open.left.resolve();
        direct.late.keep({ intent: dispatchSeq, write: () => write().then(() => this.#leave(open)) });
      }
    } catch (error) {
      log.error("the end of a response is left to the next start", { response: id, error });
      this.#leave(open);
    }
  }

  /** A response that has ended without an answer, with the entry that dispatched it. */
  async #endedForm(
    { workspaceId, id, dispatchSeq }: OpenResponse,
    { status, error }: ResponseEnd,
  ): Promise<{ readonly entry: ParsedEntry; readonly response: Members }> {
    const { store } = this.#parts;
    const found = await store.readDispatch(workspaceId, dispatchSeq);
    if (!found) throw new Error("the entry that dispatched a response cannot be read");
    const { entry } = found;
    const text = (await store.requestOf(workspaceId, dispatchSeq, entry)) ?? "";
    const row = { id, model: entry.model ?? "", createdAt: Date.parse(entry.ts ?? "") };
    return { entry, response: unansweredResponse(parsedOrNothing(text), row, { status, error }) };
  }

  async #write(
    open: OpenResponse,
    entry: ParsedEntry,
    { status, code }: ResponseEnd,
    events: EventLog | undefined,
  ): Promise<void> {
    const { db, ledger } = this.#parts;
    const { workspaceId, id, end } = open;
    const output = JSON.stringify(end);
    await db.tx(async (tx) => {
      const draft = endDraft(entry, open, { outcome: status, code, output });
      const outcomeSeq = await ledger.append(tx, workspaceId, draft);
      await endDispatched(tx, workspaceId, { id, outcomeSeq, bytes: Buffer.byteLength(output) }, end);
      if (events) await saveLog(tx, open, events);
    });
  }

  /** Leaves a response that was interrupted to the next start, with the events that readers have seen. */
  async #putBack(open: OpenResponse): Promise<void> {
    const { db, log } = this.#parts;
    const { workspaceId, id } = open;
    const events = this.#hub.find(id);
    try {
      await db.tx(async (tx) => {
        await undoAttempt(tx, workspaceId, id);
        if (events) await saveLog(tx, open, events);
      });
    } catch (error) {
      log.warn("the events of an interrupted response cannot be stored", { response: id, error });
    }
    this.#leave(open);
  }

  #leave(open: OpenResponse): void {
    this.#endReading(open);
    this.#open.delete(open.id);
    open.left.resolve();
  }

  #endReading({ id }: OpenResponse): void {
    this.#hub.find(id)?.close(null);
    this.#hub.close(id);
  }

  #read(owner: ResponseOwner, created: Members, after: number): EventReader {
    const { db, store } = this.#parts;
    const { workspaceId } = owner;
    const id = String(created.id);
    const parts = {
      created,
      stored: this.#hub.read(workspaceId, id, Math.max(after, 1)),
      ended: async () => {
        const unwritten = this.unwritten(id);
        if (unwritten) return unwritten;
        const found = await store.find(owner, id);
        if (found.row.outcomeSeq === 0) return null;
        const response = await found.readResponse();
        return isMembers(response) ? response : null;
      },
      lastId: () => lastStoredEvent(db, workspaceId, id),
    };
    return responseEvents(parts, after);
  }
}

const QUEUED = { status: "queued", error: null } as const;
const INTERNAL: ResponseFailure = { code: "internal", message: "The server failed unexpectedly." };

function endOfFailed(failure: ResponseFailure | null): ResponseEnd {
  const error = failure ?? {
    code: "provider_failed",
    message: "The provider's answer was not a whole response.",
  };
  return { status: "failed", code: error.code, error };
}

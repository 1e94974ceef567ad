import { agentAt } from "../../../access/agent-at.ts";
import type { Agent, Agents } from "../../../access/agents.ts";
import type { Workspaces } from "../../../access/workspaces.ts";
import type { Clock } from "../../../base/clock.ts";
import { Problem } from "../../../base/errors.ts";
import type { Ids } from "../../../base/ids.ts";
import type { Log } from "../../../base/log.ts";
import type { Call, PersonDecision } from "../../../gate/call.ts";
import type { DirectCallRecords } from "../../../gate/direct/open.ts";
import { agentRemoved, draining, interrupted, refuseStopped } from "../../../gate/direct/refusals.ts";
import { CallInterruption } from "../../../gate/direct/running-calls.ts";
import type { LedgerHistories } from "../../../gate/ledger-histories.ts";
import { LedgerChanged } from "../../../ledger/ledger-changed.ts";
import type { Nodes } from "../../../nodes/nodes.ts";
import { StoreUnavailable, type Tx } from "../../../store/db.ts";
import type { ClaimedWork, OtherNodes } from "../../../tasks/claims/claimed-work.ts";
import { EventHub, type EventReader } from "../../../tasks/events/hub.ts";
import { SharedEvents } from "../../../tasks/events/shared/shared-events.ts";
import { RESPONSE_EVENTS } from "../../../tasks/events/store.ts";
import type { EventMemory } from "../../../tasks/events/stored-events.ts";
import { NO_AGENT, type QueuedTask, type Scheduler } from "../../../tasks/queue/scheduler.ts";
import type { ErasedResponses } from "../../../tasks/signals.ts";
import { callingAgent } from "../../calling-agent.ts";
import { field, isMembers, type Members } from "../../json.ts";
import type { ModelCalls } from "../../model-calls.ts";
import { unsupported } from "../../translation/unsupported.ts";
import type { ResponsesClient } from "../prepare-request.ts";
import { asStream, type ReadResponsesRequest, readResponsesRequest } from "../request.ts";
import type { OwnedResponse } from "../stored/owned-response.ts";
import { findResponse, type StoredDispatch, storeDispatch } from "../stored/rows.ts";
import type { ResponseOwner } from "../stored/store.ts";
import type { HoldMemory } from "../stored/text-reading.ts";
import { ClaimedResponses } from "./claimed-responses.ts";
import { ResponseEndings } from "./endings.ts";
import { lastStoredEvent, nextAttemptsEvent } from "./journal.ts";
import { CANCELLED, type OpenResponse, type ResponseFailure, type UnansweredEnd } from "./open-response.ts";
import { OpenResponses } from "./open-responses.ts";
import { ResponseEvents } from "./read-events.ts";
import { createdResponse, QUEUED, unansweredResponse } from "./response-forms.ts";
import { type ResponseRunParts, runWhenWritable } from "./run.ts";
import { listenToErased, tellErased } from "./shared-erasures.ts";

export interface BackgroundParts extends ResponseRunParts {
  readonly modelCalls: Pick<ModelCalls, "serve" | "run" | "check">;
  readonly scheduler: Pick<Scheduler, "reserve" | "enqueueAll" | "remove">;
  readonly otherNodes: OtherNodes;
  readonly direct: Pick<DirectCallRecords, "running" | "late">;
  readonly histories: Pick<LedgerHistories, "of" | "catchUp">;
  readonly workspaces: Pick<Workspaces, "list" | "isStopped">;
  readonly agents: Agents;
  readonly nodes: Nodes;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** A background response that was accepted. */
export interface DispatchedResponse {
  readonly id: string;
  /** The entry that dispatched it. */
  readonly seq: number;
  /** The response in the state `queued`. */
  readonly response: Members;
  /** Reads its events, if it was requested as a stream. */
  readonly events: EventReader | null;
}

/** The id of the first event that a run publishes: 1 is derived from the request. */
const FIRST_EVENT = 2;
/** How often a cancel looks for the node that has the response. */
const CANCEL_ATTEMPTS = 3;
/** How many rows of earlier responses are restored in one transaction. */
const ROWS_AT_ONCE = 64;

/**
 * Background responses. They are as durable as tasks: a dispatched response is in the ledger, waits with the tasks
 * for a slot, and runs again at the next start if the process dies before its end is written. The ledger decides
 * which responses have not ended; the rows do not.
 */
export class BackgroundResponses {
  readonly #parts: BackgroundParts;
  /** The responses of this node, which others may take over. */
  readonly claimed: ClaimedWork;
  readonly #hub: EventHub;
  readonly #open: OpenResponses;
  readonly #endings: ResponseEndings;
  /** Open streams. */
  readonly #readings = new Map<ResponseEvents, { workspaceId: number; id: string; requestSeq: number }>();

  constructor(parts: BackgroundParts) {
    const { db, claims, direct, scheduler, nodes } = parts;
    this.#parts = parts;
    const hub = new EventHub(
      parts.db,
      RESPONSE_EVENTS,
      nodes.isShared ? (logs) => new SharedEvents(parts, logs, RESPONSE_EVENTS) : undefined,
    );
    this.#hub = hub;
    const { running, late } = direct;
    this.#open = new OpenResponses({ db, claims, running, scheduler, hub }, () => this.#endings);
    this.#endings = new ResponseEndings({ ...parts, hub, late }, this.#open);
    const recover = (workspaceId: number, seqs: readonly number[]) =>
      this.#recoverAll(workspaceId, seqs, null);
    this.claimed = new ClaimedResponses({ ...parts, recover }, this.#open, this.#endings);
    parts.signals.responsesErased.listen((erased) => {
      this.#erased(erased);
      tellErased(nodes.bus, erased);
    });
    listenToErased(nodes.bus, (erased) => this.#erased(erased));
    nodes.bus.missed.listen(() => {
      for (const reading of [...this.#readings.keys()]) reading.erased();
    });
  }

  /**
   * Checks a request, makes it durable and queues it.
   * @throws Problem as `ModelCalls.run` does before it sends anything, 429 `queue_full`; nothing is written then
   */
  async dispatch(
    call: Call,
    client: ResponsesClient,
    request: ReadResponsesRequest,
  ): Promise<DispatchedResponse> {
    const { modelCalls, requests, agents, claims, scheduler, ids, clock } = this.#parts;
    const { workspaceId } = call.caller;
    const { model, isStream } = request;
    // Even if its events are streamed: a dispatched response remains when its client leaves.
    await call.count();
    const agent = await callingAgent(agents, call, client.headers);
    const id = ids("resp");
    const createdAt = clock.now();
    const agentId = agent?.id ?? null;
    const place = scheduler.reserve(workspaceId);
    // Registered before it is checked, so that no stop in between misses it.
    const open = this.#open.add({ workspaceId, id, agentId, dispatchSeq: 0, via: call.via });
    try {
      const sent = { ...client, ...asStream(request) };
      await modelCalls.check(
        call,
        requests.prepare(call, sent, readResponsesRequest(sent.bytes, sent.value)),
      );
      const detail = { dialect: "responses", response: id, ...(isStream ? { stream: 1 } : {}) };
      call.about({ action: "response.dispatch", detail });
      const input = Buffer.from(client.bytes).toString();
      open.dispatchSeq = await call.commit(async (tx, record) => {
        await this.#refuseEnded(tx, open, agent);
        const requestSeq = await record({ phase: "intent", outcome: "allowed", input });
        storeDispatch(tx, workspaceId, { id, agentId, model, requestSeq, createdAt });
        claims.add(tx, workspaceId, id);
        return requestSeq;
      });
    } catch (error) {
      place.release();
      this.#open.forget(open);
      throw error;
    }
    if (isStream) this.#hub.open(id, FIRST_EVENT);
    const row = { id, model, createdAt };
    // Opened before the response can end.
    const { memory } = client;
    const created = createdResponse(client.value, row);
    const events =
      isStream && memory
        ? this.#readEvents({ workspaceId, agent }, created, open.dispatchSeq, 0, memory)
        : null;
    const { abort, wait } = open;
    if (!abort.signal.aborted && !wait.signal.aborted) place.enqueue(this.#queued(open));
    else {
      place.release();
      if (abort.signal.aborted) void this.#endings.endQueued(open);
      else this.#open.leave(open);
    }
    return { id, seq: open.dispatchSeq, response: unansweredResponse(client.value, row, QUEUED), events };
  }

  /**
   * Reads the events of a response after the id `after`.
   * @param hold called with the size of the text read before the first event
   * @param memory for the events
   * @throws Problem 404 `not_found`, 400 `unsupported_parameter` if the response was not requested as a stream
   */
  async read(
    owner: ResponseOwner,
    response: OwnedResponse,
    after: number,
    { hold, memory }: { readonly hold: HoldMemory; readonly memory: EventMemory },
  ): Promise<EventReader> {
    const { row } = response;
    const request = response.isBackground ? await response.readRequest(hold) : null;
    if (field(request, "stream") !== true) {
      throw unsupported(
        "stream",
        "is possible only for a background response that was requested as a stream.",
      );
    }
    return this.#readEvents(owner, createdResponse(request, row), row.requestSeq, after, memory);
  }

  /** How a response ended, if its end cannot be written yet. */
  unwritten(id: string): UnansweredEnd | null {
    return this.#open.get(id)?.end ?? null;
  }

  /**
   * Cancels a response unless its end is already written. If the store cannot be written, the response's end and the
   * call's entry are written later.
   */
  async cancel(call: Call, id: string): Promise<void> {
    const { otherNodes, claims, clock } = this.#parts;
    const { workspaceId } = call.caller;
    let decision: PersonDecision | null = null;
    // It may move to another node at the same moment.
    for (let attempt = 1; attempt <= CANCEL_ATTEMPTS; attempt++) {
      if (!this.#open.get(id)) await otherNodes.bring(workspaceId, id);
      const open = this.#open.get(id);
      if (!open) break;
      decision ??= await call.decide("cancel", clock);
      open.abort.abort(CANCELLED);
      await open.forgotten.promise;
      if (!claims.isShared || open.isAnswered || open.end) break;
    }
    if (decision) await call.commitDecision(decision, async () => {});
  }

  /**
   * Queues the responses that earlier processes left unfinished, unless other nodes may have them. Called once, before
   * requests are served.
   * @param endReason why they are ended instead. Null: they run again
   */
  async start(endReason: string | null): Promise<void> {
    const { workspaces, claims, histories } = this.#parts;
    if (claims.isShared) return;
    for (const { id } of workspaces.list()) {
      await this.#recoverAll(id, [...histories.of(id).openResponses], endReason);
    }
  }

  async #recoverAll(workspaceId: number, seqs: readonly number[], endReason: string | null): Promise<void> {
    const recovered: OpenResponse[] = [];
    try {
      for (let at = 0; at < seqs.length; at += ROWS_AT_ONCE) {
        await this.#recover(workspaceId, seqs.slice(at, at + ROWS_AT_ONCE), recovered);
      }
    } catch (error) {
      // None is queued: those that this node knew would never be tried again.
      for (const open of recovered) this.#open.forget(open);
      throw error;
    }
    if (endReason === null) {
      this.#parts.scheduler.enqueueAll(recovered.map((open) => this.#queued(open)));
      return;
    }
    for (const open of recovered) {
      await this.#endings.end(open, { code: "interrupted", message: endReason });
    }
  }

  /** Interrupts all responses; another node or the next start runs them again. Resolves when nothing more will be written. */
  async stop(): Promise<void> {
    const all = this.#open.all();
    this.#hub.end();
    for (const { abort } of all) abort.abort(new CallInterruption("shutdown"));
    await Promise.all(all.map(({ forgotten }) => forgotten.promise));
  }

  /**
   * Resolves when the ends of all stopped responses of a workspace, or of one of its agents, are written.
   * @throws StoreUnavailable if the store refuses one of them
   */
  async endsWritten(workspaceId: number, agentId: number | null): Promise<void> {
    const stopped = this.#open
      .all()
      .filter(
        (open) =>
          open.abort.signal.aborted &&
          open.workspaceId === workspaceId &&
          (agentId === null || open.agentId === agentId),
      );
    await Promise.all(stopped.map(({ forgotten }) => forgotten.promise));
    if (stopped.some(({ id }) => this.#open.get(id))) {
      throw new StoreUnavailable("the ends of stopped responses cannot be written yet");
    }
  }

  /** @throws Problem 409 `agent_stopped`, 503 `draining`, 404 `agent_not_found` */
  async #refuseEnded(tx: Tx, { workspaceId, abort, wait }: OpenResponse, agent: Agent | null): Promise<void> {
    const { agents, workspaces } = this.#parts;
    const current = agent && ((await agents.byId(workspaceId, agent.id, tx)) ?? null);
    if (agent && !current) throw agentRemoved();
    refuseStopped({ agents, workspaces }, workspaceId, current);
    if (abort.signal.aborted) throw interrupted(abort.signal.reason, agent);
    if (wait.signal.aborted || this.#parts.direct.running.isDraining) throw draining();
  }

  /** @param recovered gets each response as soon as this node knows it */
  async #recover(workspaceId: number, seqs: readonly number[], recovered: OpenResponse[]): Promise<void> {
    const { db, store, clock, log } = this.#parts;
    const rows: StoredDispatch[] = [];
    for (const dispatchSeq of seqs) {
      const found = await store.readDispatch(workspaceId, dispatchSeq).catch((error: unknown) => {
        if (!(error instanceof LedgerChanged)) throw error;
        log.error("a response is not started again, because the ledger was changed", { dispatchSeq, error });
        return undefined;
      });
      if (!found) continue;
      const { id, entry } = found;
      const createdAt = entry.ts === undefined ? clock.now() : Date.parse(entry.ts);
      const agentId = (await agentAt(db, workspaceId, entry.agent, createdAt))?.id ?? null;
      const known = await findResponse(db, workspaceId, id);
      const isKnown =
        known?.requestSeq === dispatchSeq && known.outcomeSeq === 0 && known.agentId === agentId;
      if (!isKnown) rows.push({ id, agentId, model: entry.model ?? "", requestSeq: dispatchSeq, createdAt });
      if (entry.detail?.stream === 1) {
        this.#hub.open(id, await nextAttemptsEvent(db, workspaceId, id, known?.attempts ?? 0));
      }
      recovered.push(this.#open.add({ workspaceId, id, agentId, dispatchSeq, via: [] }));
    }
    if (rows.length > 0) {
      await db.tx(
        null,
        async (tx) => {
          for (const row of rows) storeDispatch(tx, workspaceId, row);
        },
        { turnOf: workspaceId },
      );
    }
  }

  #queued(open: OpenResponse): QueuedTask {
    const { workspaceId, id, agentId } = open;
    return { workspaceId, taskId: id, agentId: agentId ?? NO_AGENT, call: () => this.#run(open) };
  }

  /** Never rejects. */
  async #run(open: OpenResponse): Promise<void> {
    const { store, log } = this.#parts;
    let failure: ResponseFailure | null = null;
    open.isRunning = true;
    try {
      const found = await store.readDispatch(open.workspaceId, open.dispatchSeq);
      if (!found) throw new Error("the entry that dispatched a response cannot be read");
      failure = await runWhenWritable(this.#parts, open, found.entry, this.#hub);
    } catch (error) {
      // Only a drain or a stop ends the wait for the disk.
      failure = error instanceof Problem ? error : INTERNAL;
      if (failure === INTERNAL) log.error("a background response failed", { response: open.id, error });
    }
    open.isRunning = false;
    if (open.isAnswered) this.#open.forget(open);
    else await this.#endings.end(open, failure);
  }

  #readEvents(
    owner: ResponseOwner,
    created: Members,
    requestSeq: number,
    after: number,
    memory: EventMemory,
  ): EventReader {
    const { db, store } = this.#parts;
    const { workspaceId } = owner;
    const id = String(created.id);
    const log = this.#hub.find(id);
    const parts = {
      created,
      begun: (reading: ResponseEvents) => void this.#readings.set(reading, { workspaceId, id, requestSeq }),
      over: (reading: ResponseEvents) => void this.#readings.delete(reading),
      stored: this.#hub.read(workspaceId, id, Math.max(after, 1), memory),
      ended: async () => {
        const response = await store.find(owner, id);
        const end = this.unwritten(id);
        if (response.row.outcomeSeq === 0 && !end) return null;
        const form = await response.readResponse(memory.hold);
        return isMembers(form) ? { ...form, ...end } : null;
      },
      lastId: async () => Math.max(await lastStoredEvent(db, workspaceId, id), log ? log.nextId - 1 : 0),
    };
    return new ResponseEvents(parts, after);
  }

  /** Ends streams in the middle of an erased event. Others continue from the store. */
  #erased(erased: ErasedResponses): void {
    for (const [reading, { workspaceId, id, requestSeq }] of this.#readings) {
      const isMeant = "ids" in erased ? erased.ids.includes(id) : requestSeq <= erased.upTo;
      if (workspaceId !== erased.workspaceId || !isMeant) continue;
      const open = this.#open.get(id);
      // What is in progress is erased when it ends.
      if (open && !open.isAnswered && !open.end) continue;
      this.#hub.erased(id);
      reading.erased();
    }
  }
}

const INTERNAL: ResponseFailure = { code: "internal", message: "The server failed unexpectedly." };

import { agentAt } from "../../../access/agent-at.ts";
import { type Caller, tokenIdOf } from "../../../access/caller.ts";
import type { Tokens } from "../../../access/tokens.ts";
import { AgentDenied } from "../../../agents/index.ts";
import type { Clock } from "../../../base/clock.ts";
import { Problem } from "../../../base/errors.ts";
import { parseJson } from "../../../base/json-limits.ts";
import type { Call } from "../../../gate/call.ts";
import { draining, interrupted } from "../../../gate/direct/refusals.ts";
import type { CallOrigin, Gate, Operation } from "../../../gate/gate.ts";
import { deletePayloads, erasureDetail } from "../../../ledger/erase.ts";
import type { Ledger } from "../../../ledger/ledger.ts";
import type { ParsedEntry } from "../../../ledger/reading/parsed-entry.ts";
import { type Db, StoreUnavailable, type Tx } from "../../../store/db.ts";
import type { TaskClaims } from "../../../tasks/claims/claims.ts";
import { eraseEventsOf } from "../../../tasks/erasure/response-events.ts";
import type { EventHub } from "../../../tasks/events/hub.ts";
import type { EventLog } from "../../../tasks/events/log.ts";
import type { ConversationMemory, OpenConversation } from "../../../tasks/run/conversation-memory.ts";
import type { TaskSignals } from "../../../tasks/signals.ts";
import { AGENT_HEADER } from "../../calling-agent.ts";
import type { ModelAnswer } from "../../client-request.ts";
import type { StoredAnswer } from "../../dialect.ts";
import { field, isMembers, parsedOrNothing } from "../../json.ts";
import type { ModelCalls } from "../../model-calls.ts";
import { eventsIn, readEvent } from "../../pass/events.ts";
import type { ResponseRequests } from "../prepare-request.ts";
import { asStream, type ReadResponsesRequest, readResponsesRequest } from "../request.ts";
import { finalResponse } from "../stored/final-response.ts";
import { beginAttempt, endDispatched } from "../stored/rows.ts";
import type { ResponseStore } from "../stored/store.ts";
import { earlierItems, type JournalSubject, ResponseJournal } from "./journal.ts";
import { endDraft, type OpenResponse, type ResponseFailure } from "./open-response.ts";

export interface ResponseRunParts {
  readonly signals: Pick<TaskSignals, "responsesErased">;
  readonly db: Db;
  readonly claims: TaskClaims;
  readonly ledger: Ledger;
  readonly gate: Pick<Gate, "perform">;
  readonly tokens: Pick<Tokens, "callerOf">;
  readonly store: ResponseStore;
  readonly requests: ResponseRequests;
  readonly modelCalls: Pick<ModelCalls, "serve" | "run">;
  readonly conversations: ConversationMemory;
  readonly clock: Clock;
}

/** A response that crashes have interrupted this many times is not tried again. */
const ATTEMPT_LIMIT = 3;
const CALL: Operation = { action: "model.call", scope: "models:call", counted: true };

/**
 * Makes the model call of a background response as soon as the store can be written. Until then it keeps its slot: otherwise
 * each response in the queue would fail in turn.
 * @returns see `runResponse`
 */
export async function runWhenWritable(
  parts: ResponseRunParts,
  open: OpenResponse,
  entry: ParsedEntry,
  hub: Pick<EventHub, "find">,
): Promise<ResponseFailure | null> {
  for (;;) {
    try {
      return await runResponse(parts, open, entry, hub.find(open.id));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
    await writableSoon(parts.clock, open, entry);
  }
}

/**
 * Makes the model call of a background response once, with the rights that its caller's token has now.
 * @param log the events for its readers; undefined if nobody can read them
 * @returns why it failed; null if its answer was stored, or it was aborted
 * @throws StoreUnavailable if nothing was sent, because the store could not be written
 */
async function runResponse(
  parts: ResponseRunParts,
  open: OpenResponse,
  entry: ParsedEntry,
  log: EventLog | undefined,
): Promise<ResponseFailure | null> {
  const { db, tokens } = parts;
  const { workspaceId, id } = open;
  open.attempt ??= await open.db.tx(null, (tx) => beginAttempt(tx, workspaceId, id), { turnOf: workspaceId });
  if (open.attempt > ATTEMPT_LIMIT) {
    return failed("interrupted", `The server stopped ${ATTEMPT_LIMIT} times during this response.`);
  }
  const { actor = "", agent, ts = "" } = entry;
  const tokenId = tokenIdOf({ actor });
  const caller = tokenId === null ? undefined : await tokens.callerOf(workspaceId, tokenId);
  if (!caller) return failed("invalid_token", "The token that requested this response is no longer valid.");
  if (agent !== undefined && !(await agentAt(db, workspaceId, agent, Date.parse(ts)))) {
    return failed("agent_not_found", "The agent that this response was dispatched for was removed.");
  }
  const memory = new RequestMemory(parts, workspaceId);
  try {
    return await runWith(parts, { open, entry, log, caller, memory });
  } finally {
    memory.close();
  }
}

interface ResponseRun {
  readonly open: OpenResponse;
  readonly entry: ParsedEntry;
  readonly log: EventLog | undefined;
  readonly caller: Caller;
  readonly memory: RequestMemory;
}

async function runWith(
  parts: ResponseRunParts,
  { open, entry, log, caller, memory }: ResponseRun,
): Promise<ResponseFailure | null> {
  const { gate, store, modelCalls } = parts;
  const { workspaceId, id, dispatchSeq, via, abort } = open;
  const { agent, ts = "", request_id: requestId = "" } = entry;
  const bytes = (await store.requestBytes(workspaceId, dispatchSeq)) * COPIES;
  if (!(await memory.enter(bytes, abort.signal))) return null;
  const sent = sentRequest(await store.requestOf(workspaceId, dispatchSeq, entry));
  if (!sent) return failed("interrupted", "The request was erased before it was sent.");
  const request = { previous_response_id: field(sent.value, "previous_response_id") };
  const subject = { workspaceId, id, createdAt: Date.parse(ts), request };
  open.journal ??= log ? await beginJournal(open.db, subject, log) : null;
  const { journal } = open;
  const headers = new Headers(agent === undefined || caller.agent ? {} : { [AGENT_HEADER]: agent });
  const origin: CallOrigin = {
    requestId,
    channel: "system",
    credential: { kind: "none" },
    source: "background",
    via,
  };
  let refusal = null as Problem | null;
  const result = await gate.perform<ResponseFailure | null>(
    CALL,
    origin,
    { caller, limit: null },
    async (call) => {
      const attempt = { open, entry, journal, headers, memory, sent, bytes };
      // One call, however often it is tried: it counts as unsent at most once.
      const { body } = await modelCalls
        .serve(call, "responses", () => callWhenWritable(parts, call, attempt))
        .catch((error: unknown) => {
          if (error instanceof Problem) refusal = error;
          throw error;
        });
      return body instanceof ReadableStream ? await publish(body, journal) : null;
    },
  );
  if (result.ok) return result.value;
  // The refusal is the reason, even if its own entry cannot be written.
  const { code, message } = refusal ?? result.problem;
  return failed(code, message);
}

/**
 * Ends the items of earlier attempts. Does so only once: nothing more is known about them if the model is called
 * again.
 */
async function beginJournal(db: Db, subject: JournalSubject, log: EventLog): Promise<ResponseJournal> {
  const journal = new ResponseJournal(
    db,
    subject,
    log,
    await earlierItems(db, subject.workspaceId, subject.id),
  );
  journal.begin();
  return journal;
}

/** Waits inside the call while the intent cannot be written: each refusal of a call would be another entry. */
async function callWhenWritable(parts: ResponseRunParts, call: Call, attempt: Attempt): Promise<ModelAnswer> {
  const { open, entry, memory, bytes } = attempt;
  for (;;) {
    try {
      return await callModel(parts, call, attempt);
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || call.ledgerSeq !== null) throw error;
    }
    // The conversation before the request is not kept for the next attempt, which reads and counts it again.
    await memory.enter(bytes, open.abort.signal);
    await writableSoon(parts.clock, open, entry);
  }
}

/** How often to try again to begin a response while the store cannot be written. */
const STORE_MS = 500;

/**
 * Waits a moment.
 * @throws Problem what ended the response in the meantime; 503 `draining` if it is left to the next start
 */
async function writableSoon(
  clock: Clock,
  { abort, wait }: Pick<OpenResponse, "abort" | "wait">,
  { agent: name }: Pick<ParsedEntry, "agent">,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  clock.after(STORE_MS, resolve);
  await promise;
  const { aborted, reason } = abort.signal;
  if (aborted) throw reason instanceof Problem ? reason : interrupted(reason, name ? { name } : null);
  if (wait.signal.aborted) throw draining();
}

type SentRequest = Pick<ReadResponsesRequest, "bytes" | "value">;

/** The request as it is sent. Undefined if it was erased. */
function sentRequest(text: string | undefined): SentRequest | undefined {
  return text === undefined ? undefined : asStream(readResponsesRequest(Buffer.from(text), parseJson(text)));
}

interface Attempt {
  readonly open: OpenResponse;
  readonly entry: ParsedEntry;
  readonly journal: ResponseJournal | null;
  readonly headers: Headers;
  readonly memory: RequestMemory;
  /** The request as it is sent. */
  readonly sent: SentRequest;
  /** The memory that the request counts as, without the conversation before it. */
  readonly bytes: number;
}

/** How many copies of a request are in memory while it is sent: as stored, as bytes, and parsed. */
const COPIES = 3;
/** How often to check whether there is room for a request. */
const ROOM_MS = 250;

/** The memory for a request and the conversation before it. MUST be closed. */
class RequestMemory {
  /** Called with the refusal if other conversations need the memory. */
  lost: (problem: Problem) => void = () => {};
  readonly #open: () => OpenConversation;
  readonly #clock: Clock;
  #conversation: OpenConversation;

  constructor(
    { conversations, clock }: Pick<ResponseRunParts, "conversations" | "clock">,
    workspaceId: number,
  ) {
    this.#clock = clock;
    this.#open = () => conversations.open(workspaceId, (error) => this.lost(noMemory(error)));
    this.#conversation = this.#open();
  }

  /** Counts only this from now on, and waits until there is room. False if the signal aborts first. */
  async enter(bytes: number, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      if (signal.aborted) return false;
      this.#conversation.close();
      this.#conversation = this.#open();
      try {
        this.#conversation.add(bytes);
        return true;
      } catch (error) {
        if (!(error instanceof AgentDenied)) throw error;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#clock.after(ROOM_MS, resolve);
      await promise;
    }
  }

  /** @throws Problem 429 `rate_limited` */
  hold(bytes: number): void {
    try {
      this.#conversation.add(bytes);
    } catch (error) {
      throw error instanceof AgentDenied ? noMemory(error) : error;
    }
  }

  close(): void {
    this.#conversation.close();
  }
}

async function callModel(parts: ResponseRunParts, call: Call, attempt: Attempt): Promise<ModelAnswer> {
  const { requests, modelCalls } = parts;
  const { open, headers, memory, sent } = attempt;
  const { bytes, value } = sent;
  const client = {
    ...{ bytes, value, headers, query: "", signal: open.abort.signal },
    dispatched: { response: open.id },
    admit: async (tx: Tx) => {
      if (!(await open.claim.isHeld(tx))) throw draining();
    },
    onRefused(refused: (problem: Problem) => void) {
      memory.lost = refused;
    },
    // Counted until the whole answer has been read.
    keep: () => () => {},
    hold: (more: number) => memory.hold(more),
  };
  const request = requests.prepare(call, client, readResponsesRequest(bytes, value), (tx, answer, before) =>
    keep(parts, attempt, tx, answer, before),
  );
  return modelCalls.run(call, request);
}

function noMemory({ message }: AgentDenied): Problem {
  return new Problem("rate_limited", message);
}

/** The states of a complete answer. If a provider reported another, readers would wait forever. */
const ENDED: ReadonlySet<unknown> = new Set(["completed", "incomplete"]);

/** Writes the end of the response in the transaction that stores its answer. */
async function keep(
  { claims, ledger, signals }: Pick<ResponseRunParts, "claims" | "ledger" | "signals">,
  { open, entry, journal }: Attempt,
  tx: Tx,
  { outcome, model, output }: StoredAnswer,
  before: number,
): Promise<void> {
  const { workspaceId, id, dispatchSeq } = open;
  const response = finalResponse(output);
  if (!isMembers(response) || !ENDED.has(response.status)) return;
  // Another node ends the response. This call is over nevertheless, and its outcome is written.
  if (!(await open.claim.isHeld(tx))) return;
  claims.end(tx, workspaceId, id);
  await journal?.save(tx);
  await ledger.append(tx, workspaceId, endDraft(entry, open, { outcome: "succeeded" }));
  const bytes = before + Buffer.byteLength(output);
  endDispatched(tx, workspaceId, { id, model, outcomeSeq: outcome, bytes }, response);
  const isErased = !(await isStored(tx, workspaceId, dispatchSeq));
  if (isErased) await eraseAnswer(ledger, tx, { open, entry, outcome });
  tx.onCommit(() => {
    open.isAnswered = true;
    if (isErased) signals.responsesErased.emit({ workspaceId, ids: [id] });
  });
}

/** Whether the request's text still exists. It may quote a document that was deleted while the model answered. */
async function isStored(tx: Tx, workspaceId: number, seq: number): Promise<boolean> {
  const row = await tx.get("SELECT 1 FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = 'input'", [
    workspaceId,
    seq,
  ]);
  return row !== undefined;
}

/** Erases the answer to a request that was erased. */
async function eraseAnswer(
  ledger: Ledger,
  tx: Tx,
  { open, entry, outcome }: Pick<Attempt, "open" | "entry"> & { readonly outcome: number },
): Promise<void> {
  const { workspaceId, id, dispatchSeq } = open;
  const { actor = "system", agent, request_id: requestId } = entry;
  const erased = await deletePayloads(tx, workspaceId, [{ seq: outcome, kind: "output" }]);
  await eraseEventsOf(tx, workspaceId, id);
  await ledger.append(tx, workspaceId, {
    ...{ phase: "single", action: "payload.erase", outcome: "succeeded", channel: "system" },
    ...{ actor, agent, requestId },
    detail: erasureDetail(erased, { reason: "requested", target_seq: dispatchSeq }),
  });
}

/**
 * Publishes the events of an answer.
 * @returns the failure that ends them, if any
 */
async function publish(
  body: ReadableStream<Uint8Array>,
  journal: ResponseJournal | null,
): Promise<ResponseFailure | null> {
  let failure: ResponseFailure | null = null;
  for await (const part of body) {
    for (const event of eventsIn(Buffer.from(part))) {
      const value = parsedOrNothing(readEvent(event).data);
      if (!isMembers(value)) continue;
      if (value.type === "error")
        failure = failed(String(field(value, "code")), String(field(value, "message")));
      else await journal?.add(value);
    }
  }
  return failure;
}

function failed(code: string, message: string): ResponseFailure {
  return { code, message };
}

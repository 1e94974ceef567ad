import type { Agent, Agents } from "../access/agents.ts";
import type { Workspaces } from "../access/workspaces.ts";
import { FREE } from "../base/call-cost.ts";
import { Problem } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import { Signal } from "../base/signal.ts";
import { VIA_HEADER, viaText } from "../base/via.ts";
import type { Call } from "../gate/call.ts";
import type { DirectCallRecords } from "../gate/direct/open.ts";
import { beginCall } from "../gate/direct/open-calls.ts";
import { interrupted } from "../gate/direct/refusals.ts";
import { CallInterruption } from "../gate/direct/running-calls.ts";
import { outcomeOf } from "../gate/problems.ts";
import type { Admit } from "../ledger/ledger.ts";
import { expectedCost } from "../models/expected-cost.ts";
import type { ClientModel, ModelGateway } from "../models/gateway.ts";
import type { Dialect } from "../models/native.ts";
import type { Tx } from "../store/db.ts";
import type { Scheduler } from "../tasks/queue/scheduler.ts";
import { type AttemptParts, type EndedModelCall, ModelAttempt, type RecordedModelCall } from "./attempt.ts";
import type { CallPolicy } from "./call-policy.ts";
import { type CallableModel, CallableModels } from "./callable-model.ts";
import { ClientCall } from "./client-call.ts";
import type { ClientRequest, ModelAnswer } from "./client-request.ts";
import type { DialectRequest } from "./dialect.ts";
import type { DialectAnswer } from "./dialect-answer.ts";
import {
  type AttemptFailure,
  exhausted,
  refusedFailure,
  thrownFailure,
  UnfinishedAnswer,
} from "./failures.ts";
import { findRoute } from "./find-route.ts";
import { PassingStream } from "./passing-stream.ts";
import { readWhole } from "./whole-answer.ts";

export interface ModelCallsParts extends Omit<AttemptParts, "ended" | "recorded" | "direct"> {
  readonly agents: Agents;
  readonly workspaces: Pick<Workspaces, "isStopped">;
  readonly modelGateway: ModelGateway;
  readonly scheduler: Pick<Scheduler, "enter">;
  readonly direct: Pick<DirectCallRecords, "running" | "usage" | "late">;
  readonly ids: Ids;
  /** The id of this Gatehouse instance, which its requests carry. */
  readonly instance: string;
}

/** A call that ended before anything was sent, for example because it was refused. */
interface UnsentModelCall {
  readonly dialect: Dialect;
  /** As in its entry. */
  readonly outcome: "denied" | "failed" | "cancelled";
}

const EVENT_STREAM = /^\s*text\/event-stream\b/i;

/** A request with everything that it refers to. */
interface ReadyRequest {
  readonly request: DialectRequest;
  readonly route: CallableModels;
  /** The first model of the route. */
  readonly first: CallableModel;
}

/** A call that may be made. */
interface AdmittedCall {
  readonly agent: Agent | null;
  /** The request without anything that it refers to. */
  readonly named: DialectRequest;
  readonly policy: CallPolicy;
  readonly models: readonly ClientModel[];
  /** Null if the request refers to anything. */
  readonly ready: ReadyRequest | null;
}

/** A call in progress, with everything that its attempts share. */
interface CallInProgress {
  readonly call: Call;
  readonly client: ClientRequest;
  readonly request: DialectRequest;
  readonly agent: Agent | null;
  /** Ends the call, whatever it is doing. */
  readonly abort: AbortController;
  /** Aborts when the call may no longer begin; includes `abort`. */
  readonly wait: AbortSignal;
  /** Releases everything that the call holds. Safe to call more than once. */
  leave(): void;
}

type AttemptResult = { readonly answer: ModelAnswer } | { readonly failure: AttemptFailure };

/**
 * Model calls that clients make themselves, in dialects that they know. As in a task, each call is checked, its
 * intent is on disk before anything is sent, and its outcome is on disk before the end of its answer is sent.
 */
export class ModelCalls {
  /** Emits each finished request to a model. */
  readonly ended = new Signal<EndedModelCall>();
  /** Emits each request to a model whose outcome is on disk. */
  readonly recorded = new Signal<RecordedModelCall>();
  /** Emits each call that ended before anything was sent. */
  readonly unsent = new Signal<UnsentModelCall>();
  readonly #parts: ModelCallsParts;
  readonly #attemptParts: AttemptParts;

  constructor(parts: ModelCallsParts) {
    this.#parts = parts;
    this.#attemptParts = { ...parts, ended: this.ended, recorded: this.recorded };
  }

  /**
   * Does the work of a client's call: reads its request, and calls `run`. Its entry names the dialect, whatever the
   * result, and a call that ends before anything is sent is counted as such.
   * @throws what `work` throws
   */
  async serve<Answer>(call: Call, dialect: Dialect, work: () => Promise<Answer>): Promise<Answer> {
    call.about({ detail: { dialect } });
    try {
      return await work();
    } catch (error) {
      // Without an entry there was no intent, and no attempt.
      if (call.ledgerSeq === null) {
        const outcome = error instanceof Problem ? outcomeOf(error) : "failed";
        this.unsent.emit({ dialect, outcome });
      }
      throw error;
    }
  }

  /**
   * Calls the model that the client names. If a model of a tier fails before its answer has begun, the next one is
   * tried.
   * @throws Problem; nothing was sent, or the outcome of what was sent is on disk
   */
  async run(call: Call, client: ClientRequest): Promise<ModelAnswer> {
    const { direct, scheduler, ids } = this.#parts;
    const { workspaceId } = call.caller;
    const { agent, named, policy, models, ready } = await this.#admit(call, client);
    const open = new ClientCall(direct.running, { workspaceId, agent, requestId: call.requestId, ...client });
    const { abort, wait, leave } = open;
    try {
      if (!client.dispatched) {
        const slot = { workspaceId, agentId: agent?.id ?? null, id: ids("call") };
        open.releasePlace = await scheduler.enter(slot, wait);
      }
      const { request, first, route } = ready ?? (await this.#resolve(models, client, named, workspaceId));
      wait.throwIfAborted();
      const progress: CallInProgress = { call, client, request, agent, abort, wait, leave };
      return await this.#tryEach(progress, first, route, policy);
    } catch (error) {
      leave();
      throw open.refusal(error);
    }
  }

  /**
   * Checks and counts a call that is dispatched now and made later.
   * @throws Problem as `run` does before it sends anything
   */
  async check(call: Call, client: ClientRequest): Promise<void> {
    const { modelGateway, budgets, db } = this.#parts;
    const { agent, named, models, ready } = await this.#admit(call, client);
    const { workspaceId } = call.caller;
    const { first } = ready ?? (await this.#resolve(models, client, named, workspaceId));
    if (modelGateway.price(first.id) !== FREE) await budgets.check(db, { workspaceId, agent });
  }

  /**
   * Finds the route, and counts the call. Anything that the request refers to is read only once the call has a slot.
   * All other refusals happen before it takes one.
   */
  async #admit(call: Call, client: ClientRequest): Promise<AdmittedCall> {
    const { agent, request: named, policy, models } = await findRoute(this.#parts, call, client);
    policy.refuseEnded();
    if (!named.isStream) await call.count();
    const ready = client.resolve ? null : await this.#resolve(models, client, named, call.caller.workspaceId);
    policy.refuseEnded();
    return { agent, named, policy, models, ready };
  }

  /** @throws Problem 400 `unsupported_parameter` if no model can take the request */
  async #resolve(
    models: readonly ClientModel[],
    client: ClientRequest,
    named: DialectRequest,
    workspaceId: number,
  ): Promise<ReadyRequest> {
    const { ids, clock } = this.#parts;
    const request = (await client.resolve?.()) ?? named;
    const head = () => ({ id: ids("msg").slice(4), created: Math.floor(clock.now() / 1_000) });
    const route = new CallableModels(models, { client, request, head, workspaceId });
    return { request, route, first: await route.first() };
  }

  async #tryEach(
    progress: CallInProgress,
    first: CallableModel,
    route: CallableModels,
    policy: CallPolicy,
  ): Promise<ModelAnswer> {
    const failures: AttemptFailure[] = [];
    for (let model: CallableModel | null = first; model; model = await route.next()) {
      const call = failures.length === 0 ? progress.call : progress.call.again();
      const result = await this.#try({ ...progress, call }, model, policy, failures.length + 1);
      if ("answer" in result) return result.answer;
      progress.wait.throwIfAborted();
      failures.push(result.failure);
      if (!result.failure.retryable) break;
    }
    throw exhausted(failures);
  }

  async #try(
    progress: CallInProgress,
    model: CallableModel,
    policy: CallPolicy,
    number: number,
  ): Promise<AttemptResult> {
    const { modelGateway } = this.#parts;
    const leaveSlot = await modelGateway.enter(model.id, progress.call.caller.workspaceId, progress.wait);
    const { client, request } = progress;
    // Until a stream has ended, `fetch` and the AI SDK keep the request that they sent.
    const release = request.isStream ? inTurn(leaveSlot, client.keep()) : leaveSlot;
    let isStreaming = false;
    try {
      const attempt = await this.#begin(progress, model.id, policy, number);
      const result = await this.#send(progress, model, attempt, release, policy);
      isStreaming = "answer" in result && result.answer.body instanceof ReadableStream;
      return result;
    } finally {
      if (!isStreaming) release();
    }
  }

  /** Writes the intent of an attempt, once its budget permits it. */
  async #begin(
    { call, client, request, agent, wait }: CallInProgress,
    model: string,
    policy: CallPolicy,
    number: number,
  ): Promise<ModelAttempt> {
    const { modelGateway, budgets, estimates, ids } = this.#parts;
    const { workspaceId } = call.caller;
    const detail = {
      ...{ dialect: client.api.dialect, attempt: number },
      ...request.detail,
      ...client.dispatched,
    };
    call.about({ model, detail });
    const price = modelGateway.price(model);
    const owner = ids("call");
    // All attempts send the same request, so only one entry stores it.
    const isFirst = number === 1 && !client.dispatched;
    const input = isFirst ? Buffer.from(client.bytes).toString() : undefined;
    const admitted = async (tx: Tx) => {
      if (client.admit) await client.admit(tx);
      return policy.admit(tx);
    };
    const admit: Admit = async (tx) => void (await admitted(tx));
    const { size } = request;
    const expected = () => expectedCost(price, estimates.of(workspaceId), model, () => size.bytes, size);
    const paid =
      price === FREE
        ? null
        : {
            budgets,
            signal: wait,
            // Without a budget nothing is reserved, but a lost call still has a price.
            detail: (reserved: number) => ({ ...detail, reserved: reserved || expected() }),
            claim: async (tx: Tx) => {
              const current = await admitted(tx);
              return { spender: { workspaceId, agent: current }, owner, expected };
            },
          };
    const intent = await beginCall(call, input, paid, admit);
    request.begun?.(intent);
    return new ModelAttempt(this.#attemptParts, {
      ...{ call, model, intent, agent, price, owner },
      countedAs: modelGateway.names.countedAs(model),
      dialect: client.api.dialect,
      answersInTokens: client.api.answersInTokens,
      sent: size,
      keep: request.keep,
    });
  }

  async #send(
    progress: CallInProgress,
    model: CallableModel,
    attempt: ModelAttempt,
    release: () => void,
    policy: CallPolicy,
  ): Promise<AttemptResult> {
    const { request, abort } = progress;
    const fail = async (failure: AttemptFailure): Promise<AttemptResult> => {
      const withheld = await attempt.settle({ status: "failed", failure });
      if (withheld) throw withheld;
      return { failure };
    };
    let answer: DialectAnswer | null = null;
    try {
      answer = await model.send({
        via: viaHeader(progress.call, this.#parts.instance),
        signal: abort.signal,
        workspaceId: progress.call.caller.workspaceId,
        renew: () => policy.admit(),
        used(usage) {
          attempt.reported = usage;
        },
      });
      if (answer.status !== 200) return await fail(await refusedFailure(answer));
      attempt.wasOpened = true;
      const isStream = EVENT_STREAM.test(answer.headers.get("content-type") ?? "");
      // Nobody who asked for a whole answer reads events, and an error among them would pass for an answer.
      if (isStream && !request.isStream) throw new UnfinishedAnswer("error");
      if (!isStream) return { answer: await this.#whole(progress, attempt, answer) };
      return await this.#stream(progress, attempt, answer, release, fail);
    } catch (error) {
      // Our own limits may have caused the failure, and an answer that is never ended keeps its connection.
      answer?.end();
      attempt.reported = answer?.usage ?? attempt.reported;
      if (!abort.signal.aborted) {
        if (error instanceof Problem && error.code === "ledger_unavailable") throw error;
        return fail(thrownFailure(error, model.hide));
      }
      const { reason } = abort.signal;
      const code = reason instanceof CallInterruption ? { code: reason.code } : {};
      const withheld = await attempt.settle({ status: "cancelled", ...code });
      if (withheld) throw withheld;
      throw error;
    }
  }

  /** @throws Problem 503 `ledger_unavailable` */
  async #whole(
    { client, request, leave }: CallInProgress,
    attempt: ModelAttempt,
    answer: DialectAnswer,
  ): Promise<ModelAnswer> {
    const { received, text } = await readWhole(client.api, attempt, answer);
    const body = request.answer?.(received) ?? received;
    const withheld = await attempt.settle({ status: "succeeded", output: request.evidence?.(text) ?? text });
    if (withheld) throw withheld;
    answer.end();
    leave();
    const { model, intent } = attempt;
    return { contentType: "application/json", model, intent, body };
  }

  async #stream(
    { call, client, request, agent, abort, leave }: CallInProgress,
    attempt: ModelAttempt,
    answer: DialectAnswer,
    release: () => void,
    fail: (failure: AttemptFailure) => Promise<AttemptResult>,
  ): Promise<AttemptResult> {
    const stream = new PassingStream({
      ...{ api: client.api, attempt, answer, abort, requestId: call.requestId, clock: this.#parts.clock },
      reader: request.readStream(),
      interruption: interruptionOf(abort.signal, agent),
      ended: inTurn(release, leave),
    });
    const failure = await stream.begin();
    if (failure) {
      answer.end();
      return fail(failure);
    }
    const { model, intent } = attempt;
    return { answer: { contentType: "text/event-stream", model, intent, body: stream.body() } };
  }
}

/** The Gatehouse instances that a request has passed through. A request that leads back here is refused. */
export function viaHeader({ via }: Call, instance: string): Record<string, string> {
  return { [VIA_HEADER]: viaText([...via, instance]) };
}

/* Functions that a stream keeps are not created in async functions: a function created there keeps all variables,
   so a stream would keep its whole request in memory. */

function interruptionOf(signal: AbortSignal, agent: Agent | null) {
  return () => {
    const { reason } = signal;
    if (reason instanceof CallInterruption) return { problem: interrupted(reason, agent), code: reason.code };
    // Other requests need this request's memory.
    const isGivenUp = reason instanceof Problem && reason.code !== "client_closed";
    return isGivenUp ? { problem: reason, code: reason.code } : null;
  };
}

function inTurn(first: () => void, second: () => void): () => void {
  return () => {
    first();
    second();
  };
}

import type { Agent, Agents } from "../access/agents.ts";
import { OPEN_POLICY, type TierPolicy } from "../access/tier-policy.ts";
import type { Workspaces } from "../access/workspaces.ts";
import { ByteBlocks } from "../base/byte-blocks.ts";
import { FREE } from "../base/credits.ts";
import { Problem } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import { Signal } from "../base/signal.ts";
import type { Call } from "../gate/call.ts";
import type { DirectCallRecords } from "../gate/direct/open.ts";
import { beginCall } from "../gate/direct/open-calls.ts";
import { agentRemoved, draining, interrupted, refuseStopped } from "../gate/direct/refusals.ts";
import { CallInterruption } from "../gate/direct/running-calls.ts";
import type { Admit } from "../ledger/ledger.ts";
import { expectedCost } from "../models/expected-cost.ts";
import type { ModelGateway, NativeModel } from "../models/gateway.ts";
import type { NativeAnswer } from "../models/native.ts";
import type { Tx } from "../store/db.ts";
import type { Scheduler } from "../tasks/queue/scheduler.ts";
import { type AttemptParts, type EndedModelCall, ModelAttempt } from "./attempt.ts";
import { callingAgent } from "./calling-agent.ts";
import type { DialectApi, DialectRequest } from "./dialect.ts";
import { type AttemptFailure, refusedFailure, thrownFailure } from "./failures.ts";
import { PassingStream } from "./passing-stream.ts";

export interface ModelCallsParts extends Omit<AttemptParts, "ended" | "direct"> {
  readonly agents: Agents;
  readonly workspaces: Pick<Workspaces, "isStopped">;
  readonly modelGateway: ModelGateway;
  readonly scheduler: Pick<Scheduler, "enter">;
  readonly direct: Pick<DirectCallRecords, "running" | "usage" | "late">;
  readonly ids: Ids;
}

/** A client's request for a model. */
export interface ClientRequest {
  readonly api: DialectApi;
  readonly bytes: Uint8Array;
  /** The bytes as parsed. */
  readonly value: unknown;
  readonly headers: Headers;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

/** An answer for a client. MUST be sent, or its body cancelled. */
export interface ModelAnswer {
  readonly status: number;
  readonly contentType: string;
  /** The model that answers. */
  readonly model: string;
  /** The seq of the intent of the request that is answered. */
  readonly intent: number;
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
}

const JSON_TYPE = "application/json";
const EVENT_STREAM = /^\s*text\/event-stream\b/i;

/** A call on its way, with what all its attempts share. */
interface CallInProgress {
  readonly call: Call;
  readonly client: ClientRequest;
  readonly request: DialectRequest;
  readonly agent: Agent | null;
  /** Ends the call, whatever it is doing. */
  readonly abort: AbortController;
  /** Aborts when the call must not begin any more; includes `abort`. */
  readonly wait: AbortSignal;
  /** Gives back what the call holds. May be called again. */
  leave(): void;
}

type AttemptResult = { readonly answer: ModelAnswer } | { readonly failure: AttemptFailure };

/**
 * Calls of models that clients make themselves, in the dialects that they know. As in a task, each is checked, its
 * intent is on disk before anything is sent, and its outcome is on disk before the end of its answer is sent.
 */
export class ModelCalls {
  /** Emits each request to a model that has ended. */
  readonly ended = new Signal<EndedModelCall>();
  readonly #parts: ModelCallsParts;
  readonly #attemptParts: AttemptParts;

  constructor(parts: ModelCallsParts) {
    this.#parts = parts;
    this.#attemptParts = { ...parts, ended: this.ended };
  }

  /**
   * Calls the model that the client names. If a model of a tier fails before its answer has begun, the next one is
   * tried.
   * @throws Problem; nothing was sent, or the outcome of what was sent is on disk
   */
  async run(call: Call, client: ClientRequest): Promise<ModelAnswer> {
    const { modelGateway, workspaces, agents, direct, scheduler, ids } = this.#parts;
    const { workspaceId } = call.caller;
    const agent = await callingAgent(agents, call, client.headers);
    const request = client.api.read(client.bytes, client.value);
    const target = modelGateway.names.resolve(request.model);
    if (!target) throw unknownModel(request.model);
    call.about(target.kind === "tier" ? { tier: target.tier } : { model: target.id });
    const policy = new CallPolicy(agent);
    const models = modelGateway.openNative(() => policy.current, target, client.api.dialect);
    if (!request.isStream) await call.count();
    refuseStopped({ agents, workspaces }, workspaceId, agent);
    if (direct.running.isDraining) throw draining();

    const abort = new AbortController();
    const wait = new AbortController();
    const leaves = () => abort.abort();
    client.signal.addEventListener("abort", leaves, { once: true });
    if (client.signal.aborted) leaves();
    const unregister = direct.running.add({ workspaceId, agentId: agent?.id ?? null, abort, wait });
    let release = () => {};
    const leave = () => {
      client.signal.removeEventListener("abort", leaves);
      release();
      unregister();
    };
    const either = AbortSignal.any([abort.signal, wait.signal]);
    const progress: CallInProgress = { call, client, request, agent, abort, wait: either, leave };
    try {
      release = await scheduler.enter({ workspaceId, agentId: agent?.id ?? null, id: ids("call") }, either);
      return await this.#tryEach(progress, models, policy);
    } catch (error) {
      leave();
      const { reason } = either;
      if (!either.aborted || error instanceof Problem) throw error;
      if (reason instanceof CallInterruption) throw interrupted(reason, agent);
      throw new Problem("client_closed", "The client closed the connection before it was answered.");
    }
  }

  async #tryEach(
    progress: CallInProgress,
    models: readonly NativeModel[],
    policy: CallPolicy,
  ): Promise<ModelAnswer> {
    const failures: AttemptFailure[] = [];
    for (const [index, model] of models.entries()) {
      const call = index === 0 ? progress.call : progress.call.again();
      const result = await this.#try({ ...progress, call }, model, policy, index + 1);
      if ("answer" in result) return result.answer;
      progress.wait.throwIfAborted();
      failures.push(result.failure);
      if (!result.failure.retryable) break;
    }
    throw exhausted(failures);
  }

  async #try(
    progress: CallInProgress,
    model: NativeModel,
    policy: CallPolicy,
    number: number,
  ): Promise<AttemptResult> {
    const { modelGateway } = this.#parts;
    const leaveSlot = await modelGateway.enter(model.id, progress.call.caller.workspaceId, progress.wait);
    let isStreaming = false;
    try {
      const attempt = await this.#begin(progress, model.id, policy, number);
      const result = await this.#send(progress, model, attempt, leaveSlot);
      isStreaming = "answer" in result && result.answer.body instanceof ReadableStream;
      return result;
    } finally {
      if (!isStreaming) leaveSlot();
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
    const detail = { dialect: client.api.dialect, attempt: number };
    call.about({ model, detail });
    const price = modelGateway.price(model);
    const owner = ids("call");
    // Only the first attempt keeps the request: it is the same for all of them.
    const input = number === 1 ? Buffer.from(client.bytes).toString() : undefined;
    const admit: Admit = async (tx) => void (await this.#admit(tx, workspaceId, agent, policy));
    const paid =
      price === FREE
        ? null
        : {
            budgets,
            signal: wait,
            detail: (reserved: number) => ({ ...detail, ...(reserved === 0 ? {} : { reserved }) }),
            claim: async (tx: Tx) => {
              const current = await this.#admit(tx, workspaceId, agent, policy);
              const expected = () => expectedCost(price, estimates, model, () => request.bytes);
              return { spender: { workspaceId, agent: current }, owner, expected };
            },
          };
    const intent = await beginCall(call, input, paid, admit);
    return new ModelAttempt(this.#attemptParts, {
      ...{ call, model, intent, agent, price, owner },
      sent: { bytes: request.bytes, textBytes: request.textBytes },
    });
  }

  /**
   * Checks in the transaction of an intent that the call may still be made, with the agent as it is now.
   * @throws Problem 404 `agent_not_found`, 409 `agent_stopped`, 503 `draining`
   */
  async #admit(tx: Tx, workspaceId: number, before: Agent | null, policy: CallPolicy): Promise<Agent | null> {
    const { agents, workspaces, direct } = this.#parts;
    if (direct.running.isDraining) throw draining();
    const agent = before && ((await agents.byId(workspaceId, before.id, tx)) ?? null);
    if (before && !agent) throw agentRemoved();
    refuseStopped({ agents, workspaces }, workspaceId, agent);
    policy.changeTo(agent);
    return agent;
  }

  async #send(
    progress: CallInProgress,
    model: NativeModel,
    attempt: ModelAttempt,
    leaveSlot: () => void,
  ): Promise<AttemptResult> {
    const { client, request, abort } = progress;
    const fail = async (failure: AttemptFailure): Promise<AttemptResult> => {
      const withheld = await attempt.settle({ status: "failed", failure });
      if (withheld) throw withheld;
      return { failure };
    };
    try {
      const answer = await model.send({
        body: request.bytesFor(model.name),
        headers: client.api.passedHeaders(client.headers),
        signal: abort.signal,
        workspaceId: progress.call.caller.workspaceId,
      });
      if (answer.status >= 400) return await fail(await refusedFailure(answer));
      attempt.wasOpened = true;
      const type = answer.headers.get("content-type") ?? JSON_TYPE;
      const isStream = request.isStream && EVENT_STREAM.test(type);
      if (!isStream) return { answer: await this.#whole(progress, attempt, answer, type) };
      return await this.#stream(progress, attempt, answer, { type, leaveSlot }, fail);
    } catch (error) {
      if (!abort.signal.aborted) {
        if (error instanceof Problem && error.code === "ledger_unavailable") throw error;
        return fail(thrownFailure(error));
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
    { client, leave }: CallInProgress,
    attempt: ModelAttempt,
    answer: NativeAnswer,
    contentType: string,
  ): Promise<ModelAnswer> {
    const blocks = new ByteBlocks();
    for (let part = await answer.read(); part; part = await answer.read()) {
      blocks.add(part);
      attempt.receivedBytes += part.length;
    }
    attempt.begins();
    const body = blocks.joined();
    const output = body.toString();
    attempt.reported = client.api.usageOf(output);
    const withheld = await attempt.settle({ status: "succeeded", output });
    if (withheld) throw withheld;
    leave();
    const { model, intent } = attempt;
    return { status: answer.status, contentType, model, intent, body };
  }

  async #stream(
    { call, client, request, agent, abort, leave }: CallInProgress,
    attempt: ModelAttempt,
    answer: NativeAnswer,
    { type, leaveSlot }: { readonly type: string; readonly leaveSlot: () => void },
    fail: (failure: AttemptFailure) => Promise<AttemptResult>,
  ): Promise<AttemptResult> {
    const stream = new PassingStream({
      ...{ api: client.api, attempt, answer, abort, requestId: call.requestId, clock: this.#parts.clock },
      reader: request.readStream(),
      interruption: () => {
        const { reason } = abort.signal;
        if (!(reason instanceof CallInterruption)) return null;
        return { problem: interrupted(reason, agent), code: reason.code };
      },
      ended: () => {
        leaveSlot();
        leave();
      },
    });
    const failure = await stream.begin();
    if (failure) {
      answer.end();
      return fail(failure);
    }
    const { model, intent } = attempt;
    return { answer: { status: answer.status, contentType: type, model, intent, body: stream.body() } };
  }
}

/** The tier policy of a call's agent, as last read. Without an agent, every model is allowed. */
class CallPolicy {
  current: TierPolicy;

  constructor(agent: Agent | null) {
    this.current = agent?.tierPolicy ?? OPEN_POLICY;
  }

  changeTo(agent: Agent | null): void {
    this.current = agent?.tierPolicy ?? OPEN_POLICY;
  }
}

/** The refusal after the last attempt. That of the last one, unless all of them were silent for too long. */
function exhausted(failures: readonly AttemptFailure[]): Problem {
  const last = failures.at(-1);
  if (!last) throw new Error("a route without models was called");
  const isTimeout = last.problem.code === "provider_timeout";
  if (!isTimeout || failures.every(({ problem }) => problem.code === "provider_timeout")) return last.problem;
  return new Problem("provider_failed", "Each of the tier's models failed.");
}

function unknownModel(name: string): Problem {
  const shown = JSON.stringify(name.slice(0, 200));
  return new Problem(
    "model_not_found",
    `There is no model, tier or alias ${shown}. GET /v1/models lists them.`,
    {
      errors: [{ path: "/model", message: "must be the name of a model, a tier or an alias" }],
    },
  );
}

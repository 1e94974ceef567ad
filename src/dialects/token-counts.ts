import type { Agent } from "../access/agents.ts";
import { estimateTokens } from "../agents/model/usage.ts";
import { ByteBlocks } from "../base/byte-blocks.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Signal } from "../base/signal.ts";
import type { Call } from "../gate/call.ts";
import type { DirectCallRecords } from "../gate/direct/open.ts";
import { beginCall } from "../gate/direct/open-calls.ts";
import { CallInterruption } from "../gate/direct/running-calls.ts";
import { lateDraft, usageRecordOf, withoutOutput } from "../gate/direct/settle-direct.ts";
import type { EntryDraft } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { ClientModel, ModelGateway, NativeModel } from "../models/gateway.ts";
import type { NativeAnswer, NativeRequest } from "../models/native.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { CallPolicyParts } from "./call-policy.ts";
import { ClientCall } from "./client-call.ts";
import type { ClientRequest, ModelAnswer } from "./client-request.ts";
import {
  type AttemptFailure,
  exhausted,
  refusedFailure,
  thrownFailure,
  UnfinishedAnswer,
} from "./failures.ts";
import { type ClientRoute, findRoute } from "./find-route.ts";
import { field, isErrorAnswer, parsedOrNothing, tokenCount } from "./json.ts";
import { viaHeader } from "./model-calls.ts";

export interface TokenCountsParts extends CallPolicyParts {
  readonly modelGateway: ModelGateway;
  readonly direct: Pick<DirectCallRecords, "running" | "usage" | "late">;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly log: Log;
  /** The id of this Gatehouse instance, which its requests carry. */
  readonly instance: string;
}

/** The number of tokens in a request: counted by its provider, or estimated if the provider's API cannot count. */
export type TokenCount = { readonly answer: ModelAnswer } | { readonly estimated: number };

/** A model whose provider can count. */
interface CountingModel extends ClientModel {
  readonly native: NativeModel;
}

interface CountingRoute extends ClientRoute {
  readonly models: readonly CountingModel[];
}

type CountEnd =
  | { readonly status: "succeeded"; readonly output: Buffer<ArrayBuffer> }
  | { readonly status: "failed"; readonly failure: AttemptFailure }
  | { readonly status: "cancelled"; readonly code: string | undefined; readonly error: unknown };

/** The path below a Messages endpoint. */
const PATH = "/count_tokens";

/**
 * Counts the tokens of requests that clients have not sent yet. The prompt is sent to a provider, as in a call, so
 * the same policy applies, and an intent and an outcome are recorded. Nothing is charged.
 */
export class TokenCounter {
  /** Emits each request to a provider once it has ended. */
  readonly ended = new Signal<{ readonly status: CountEnd["status"] }>();
  readonly #parts: TokenCountsParts;

  constructor(parts: TokenCountsParts) {
    this.#parts = parts;
  }

  /** @throws Problem; nothing was sent, or the outcome of what was sent is on disk */
  async run(call: Call, client: ClientRequest): Promise<TokenCount> {
    const route = await findRoute(this.#parts, call, client);
    route.policy.refuseEnded();
    // If the provider of the first model cannot count tokens, the prompt is not sent anywhere.
    const counting = route.models[0] && isNative(route.models[0]) ? route.models.filter(isNative) : [];
    if (counting.length === 0) return { estimated: estimateTokens(route.request.size.contentBytes) };
    const { workspaceId } = call.caller;
    const { agent } = route;
    const open = new ClientCall(this.#parts.direct.running, { workspaceId, agent, ...client });
    try {
      return { answer: await this.#tryEach(call, client, { ...route, models: counting }, open) };
    } catch (error) {
      throw open.refusal(error);
    } finally {
      open.leave();
    }
  }

  async #tryEach(
    call: Call,
    client: ClientRequest,
    route: CountingRoute,
    open: ClientCall,
  ): Promise<ModelAnswer> {
    const failures: AttemptFailure[] = [];
    for (const [index, model] of route.models.entries()) {
      const next = index === 0 ? call : call.again();
      const result = await this.#try(next, client, route, open, model, index + 1);
      if (!("reason" in result)) return result;
      open.wait.throwIfAborted();
      failures.push(result);
      if (!result.retryable) break;
    }
    throw exhausted(failures);
  }

  async #try(
    call: Call,
    client: ClientRequest,
    { request, policy, agent }: CountingRoute,
    open: ClientCall,
    model: CountingModel,
    attempt: number,
  ): Promise<ModelAnswer | AttemptFailure> {
    const { modelGateway, clock } = this.#parts;
    const { workspaceId } = call.caller;
    const leaveSlot = await modelGateway.enter(model.id, workspaceId, open.wait);
    try {
      call.about({ model: model.id, detail: { dialect: client.api.dialect, attempt } });
      // Only the first attempt keeps the request: it is the same for all attempts.
      const input = attempt === 1 ? Buffer.from(client.bytes).toString() : undefined;
      const intent = await beginCall(call, input, null, async (tx) => void (await policy.admit(tx)));
      const began = clock.monotonic();
      const { api } = client;
      const headers = { ...api.passedHeaders(client.headers), ...viaHeader(call, this.#parts.instance) };
      const end = await this.#send(client, open, model, {
        ...{ body: request.bytesFor(model.native.name, model.id), workspaceId, headers },
      });
      await this.#settle(call, agent, intent, began, end);
      if (end.status === "failed") return end.failure;
      if (end.status === "cancelled") throw end.error;
      return { contentType: "application/json", model: model.id, intent, body: end.output };
    } finally {
      leaveSlot();
    }
  }

  /** Never rejects. */
  async #send(
    { query }: ClientRequest,
    { abort: { signal } }: ClientCall,
    { native, hide }: CountingModel,
    sent: Pick<NativeRequest, "body" | "workspaceId" | "headers">,
  ): Promise<CountEnd> {
    try {
      const answer = await native.send({ ...sent, suffix: PATH + query, signal });
      if (answer.status !== 200) return { status: "failed", failure: await refusedFailure(answer) };
      return { status: "succeeded", output: await readCount(answer) };
    } catch (error) {
      if (!signal.aborted) return { status: "failed", failure: thrownFailure(error, hide) };
      const { reason } = signal;
      const code = reason instanceof CallInterruption ? reason.code : undefined;
      return { status: "cancelled", code, error };
    }
  }

  /** Records an outcome and counts it. Not made in an async function: it may be kept until the disk has room. */
  #recording(
    payer: { readonly workspaceId: number; readonly agent: Agent | null },
    end: { readonly outcome: CountEnd["status"]; readonly durationMs: number },
  ): (draft: EntryDraft) => Promise<void> {
    const { ledger, clock, direct } = this.#parts;
    return async (draft) => {
      await ledger.record(payer.workspaceId, draft);
      direct.usage.note(usageRecordOf(payer, { kind: "count", name: "messages", ...end }, clock.now()));
    };
  }

  /** @throws Problem 503 `ledger_unavailable` if the outcome cannot be recorded: the answer is withheld */
  async #settle(
    call: Call,
    agent: Agent | null,
    intent: number,
    began: number,
    end: CountEnd,
  ): Promise<void> {
    const { clock, log, direct } = this.#parts;
    const { workspaceId } = call.caller;
    const ended = clock.monotonic();
    const durationMs = ended - began;
    const entry = outcomeOf(call, intent, Math.round(durationMs), end);
    const { status: outcome } = end;
    this.ended.emit({ status: outcome });
    const record = this.#recording({ workspaceId, agent }, { outcome, durationMs });
    try {
      await record(entry);
    } catch (error) {
      log.error("a token count is withheld, because its outcome cannot be recorded", { intent, error });
      if (error instanceof StoreUnavailable) {
        const late = lateRecord({ clock, record }, withoutOutput(entry), ended);
        direct.late.keep({ workspaceId, intent, write: late });
      }
      throw new Problem(
        "ledger_unavailable",
        "The evidence ledger cannot be written, so the answer is withheld.",
      );
    }
  }
}

/** @throws UnfinishedAnswer if it is an error; whatever reading throws */
async function readCount(answer: NativeAnswer): Promise<Buffer<ArrayBuffer>> {
  try {
    const blocks = new ByteBlocks();
    for (let part = await answer.read(); part; part = await answer.read()) blocks.add(part);
    const output = blocks.joined();
    const value = parsedOrNothing(output.toString());
    if (value === undefined || isErrorAnswer(value)) throw new UnfinishedAnswer("error");
    return output;
  } finally {
    answer.end();
  }
}

/**
 * Created here and not inside the async function that counts, because a closure would keep all variables of that
 * function alive.
 */
function lateRecord(
  { clock, record }: Pick<TokenCountsParts, "clock"> & { record(draft: EntryDraft): Promise<void> },
  draft: EntryDraft,
  since: number,
): () => Promise<void> {
  return () => record(lateDraft(draft, clock.monotonic() - since));
}

function outcomeOf(call: Call, intent: number, durationMs: number, end: CountEnd): EntryDraft {
  const code =
    end.status === "failed" ? end.failure.reason : end.status === "cancelled" ? end.code : undefined;
  const draft = call.draft(end.status, code);
  const output = end.status === "succeeded" ? end.output.toString() : undefined;
  const counted =
    output === undefined ? undefined : tokenCount(field(parsedOrNothing(output), "input_tokens"));
  return {
    ...draft,
    ...{ phase: "outcome", ref: intent, output },
    detail: { ...draft.detail, duration_ms: durationMs, counted_tokens: counted },
  };
}

function isNative(model: ClientModel): model is CountingModel {
  return model.native !== null;
}

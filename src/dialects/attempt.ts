import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Agent } from "../access/agents.ts";
import { type EndedRequest, usageOf } from "../agents/model/response-end.ts";
import type { TokenUsage } from "../agents/model/usage.ts";
import { cost, type Price } from "../base/call-cost.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Signal } from "../base/signal.ts";
import type { Budgets } from "../gate/budget.ts";
import type { Call } from "../gate/call.ts";
import type { DirectCallRecords } from "../gate/direct/open.ts";
import { lateSettling, settleDirectCall, withoutOutput } from "../gate/direct/settle-direct.ts";
import type { EntryDraft } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { WorkspaceEstimates } from "../models/expected-cost.ts";
import type { Dialect } from "../models/native.ts";
import { tokenParts } from "../models/token-parts.ts";
import { type Db, StoreUnavailable, type Tx } from "../store/db.ts";
import type { DialectRequest, RequestSize } from "./dialect.ts";
import type { AttemptFailure } from "./failures.ts";

/** A model call that has ended. `credits` is in micro-credits. */
export interface EndedModelCall {
  /** The model's name in metrics and statistics: see `ModelNames.countedAs`. */
  readonly model: string;
  readonly status: "succeeded" | "failed" | "cancelled";
  readonly durationMs: number;
  readonly credits: number;
  readonly dialect: Dialect;
  /** Null: no part of the answer has arrived. */
  readonly firstTokenMs: number | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A model call whose outcome is on disk. */
export interface RecordedModelCall extends Pick<EndedModelCall, "dialect" | "model" | "status"> {
  readonly workspaceId: number;
  /** The agent that the client acts as. */
  readonly agent: { readonly id: number; readonly name: string } | null;
  /** The seq of its intent. */
  readonly intent: number;
}

export interface AttemptParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly budgets: Budgets;
  readonly direct: Pick<DirectCallRecords, "usage" | "late">;
  readonly estimates: WorkspaceEstimates;
  readonly clock: Clock;
  readonly log: Log;
  readonly ended: Signal<EndedModelCall>;
  readonly recorded: Signal<RecordedModelCall>;
}

/** How an attempt ended. */
export type AttemptEnd =
  | { readonly status: "succeeded"; readonly output: string }
  | { readonly status: "failed"; readonly failure: AttemptFailure; readonly output?: string }
  | { readonly status: "cancelled"; readonly code?: string; readonly output?: string };

/** A request to a model whose intent is on disk. */
export class ModelAttempt {
  readonly call: Call;
  readonly model: string;
  /** The seq of its intent. */
  readonly intent: number;
  /** Whether the provider has begun to answer. */
  wasOpened = false;
  /** The usage that the provider has reported so far. */
  reported: LanguageModelV4Usage | null = null;
  /** Bytes received so far. Once the answer has ended, the size of its text. */
  receivedBytes = 0;
  readonly #parts: AttemptParts;
  readonly #countedAs: string;
  readonly #dialect: Dialect;
  readonly #sent: RequestSize;
  readonly #keep: DialectRequest["keep"];
  readonly #agent: Agent | null;
  readonly #price: Price;
  readonly #owner: string;
  readonly #answersInTokens: boolean;
  readonly #began: number;
  #firstTokenMs: number | null = null;
  #settled: Promise<Problem | null> | null = null;

  constructor(
    parts: AttemptParts,
    begun: {
      readonly call: Call;
      readonly model: string;
      /** Its name in metrics and statistics. */
      readonly countedAs: string;
      readonly dialect: Dialect;
      readonly intent: number;
      readonly agent: Agent | null;
      readonly price: Price;
      /** The owner of this attempt's reservation. */
      readonly owner: string;
      readonly answersInTokens: boolean;
      readonly sent: RequestSize;
      readonly keep: DialectRequest["keep"];
    },
  ) {
    this.#parts = parts;
    this.call = begun.call;
    this.model = begun.model;
    this.#countedAs = begun.countedAs;
    this.#dialect = begun.dialect;
    this.intent = begun.intent;
    this.#agent = begun.agent;
    this.#price = begun.price;
    this.#owner = begun.owner;
    this.#sent = begun.sent;
    this.#keep = begun.keep;
    this.#answersInTokens = begun.answersInTokens;
    this.#began = parts.clock.monotonic();
  }

  /** Called when the first part of the answer arrives. */
  begins(): void {
    this.#firstTokenMs ??= this.#parts.clock.monotonic() - this.#began;
  }

  /**
   * Records, charges and counts the attempt, once. Resolves once the outcome is on disk. Never rejects.
   * @returns null, or 503 `ledger_unavailable` if it cannot be recorded: the answer MUST then be withheld
   */
  settle(end: AttemptEnd): Promise<Problem | null> {
    this.#settled ??= this.#settle(end);
    return this.#settled;
  }

  async #settle(end: AttemptEnd): Promise<Problem | null> {
    const { direct, budgets, clock, log, ended } = this.#parts;
    const { call, model, intent } = this;
    const { workspaceId } = call.caller;
    const durationMs = clock.monotonic() - this.#began;
    const usage = this.#usageOf(end);
    const credits = cost(this.#price, usage);
    this.#report(end, usage);
    const name = this.#countedAs;
    const { inputTokens, outputTokens } = usage;
    const { status } = end;
    const client = { dialect: this.#dialect, firstTokenMs: this.#firstTokenMs };
    ended.emit({ ...{ model: name, status, durationMs, credits, inputTokens, outputTokens }, ...client });
    const settled = {
      payer: { workspaceId, agent: this.#agent },
      credits,
      owner: this.#owner,
      usage: { kind: "model", name, outcome: status, inputTokens, outputTokens, durationMs, client },
    } as const;
    const entry = this.#entryOf(end, usage, durationMs, credits);
    const announce = this.#announcing(status);
    try {
      await settleDirectCall(
        { ...this.#parts, usage: direct.usage },
        { ...settled, entry, also: this.#keeping(end) },
      );
      budgets.release(this.#owner);
      announce();
      return null;
    } catch (error) {
      log.error("a model's answer is withheld, because its outcome cannot be recorded", {
        model,
        intent,
        error,
      });
      if (error instanceof StoreUnavailable) {
        // Parts of the stream have already reached the client.
        const characters = entry.output?.length ?? 0;
        const isKept = direct.late.fits(workspaceId, characters);
        const late = { ...settled, entry: isKept ? entry : withoutOutput(entry) };
        const write = lateSettling({ ...this.#parts, usage: direct.usage }, late, {
          since: this.#began + durationMs,
          done: announce,
        });
        direct.late.keep({ workspaceId, intent, write, characters: isKept ? characters : 0 });
      }
      return new Problem(
        "ledger_unavailable",
        "The evidence ledger cannot be written, so the answer is withheld.",
      );
    }
  }

  /**
   * Emits that the outcome is on disk. Not created in an async function, because it would keep all variables of that
   * function alive.
   */
  #announcing(status: EndedModelCall["status"]): () => void {
    const { recorded } = this.#parts;
    const { workspaceId } = this.call.caller;
    const { model, intent } = this;
    const call = { workspaceId, agent: this.#agent, model, status, intent, dialect: this.#dialect };
    return () => recorded.emit(call);
  }

  /** Returns what to write with the outcome, if the client may refer to the answer later. */
  #keeping(end: AttemptEnd): ((tx: Tx, outcome: number) => Promise<void>) | undefined {
    const keep = this.#keep;
    if (!keep || end.status !== "succeeded") return undefined;
    const { model, call } = this;
    const { workspaceId } = call.caller;
    const { output } = end;
    const agentId = this.#agent?.id ?? null;
    return (tx, outcome) => keep(tx, { workspaceId, agentId, model, outcome, output });
  }

  #entryOf(end: AttemptEnd, usage: TokenUsage, durationMs: number, credits: number): EntryDraft {
    const { call, intent } = this;
    const code =
      end.status === "failed" ? end.failure.reason : end.status === "cancelled" ? end.code : undefined;
    const draft = call.draft(end.status, code);
    return {
      ...draft,
      ...{ phase: "outcome", ref: intent, credits },
      ...(end.output === undefined ? {} : { output: end.output }),
      detail: {
        ...draft.detail,
        duration_ms: Math.round(durationMs),
        ...(this.#firstTokenMs === null ? {} : { first_token_ms: Math.round(this.#firstTokenMs) }),
        input_tokens: usage.inputTokens,
        output_tokens: usage.outputTokens,
        ...tokenParts(usage),
        usage: usage.estimated ? "estimated" : "reported",
        ...(usage.disbelieved === undefined ? {} : { disbelieved: usage.disbelieved }),
      },
    };
  }

  #usageOf(end: AttemptEnd): TokenUsage {
    const { bytes, contentBytes, textBytes } = this.#sent;
    const usage = usageOf({
      ending: this.#endingOf(end),
      received: { bytes: this.receivedBytes },
      sentBytes: () => bytes,
      contentBytes: () => contentBytes,
      exceedsText: (most) => textBytes > most,
      wasOpened: this.wasOpened,
    });
    // A call that produces no output has nothing to estimate there.
    const isCounted = !this.#answersInTokens && usage.inputTokens === this.reported?.inputTokens.total;
    return isCounted ? { ...usage, estimated: false } : usage;
  }

  #endingOf(end: AttemptEnd): EndedRequest["ending"] {
    const { reported } = this;
    const usage = reported ? { usage: reported } : {};
    if (end.status === "cancelled") return { status: "cancelled", ...usage };
    if (end.status === "succeeded") {
      // Without a report, both counts are estimated.
      return { status: "succeeded", usage: reported ?? UNREPORTED, finishReason: "stop" };
    }
    const { failure } = end;
    const read = failure.wasRead ? ({ isBroken: true } as const) : {};
    return { status: "failed", failure, error: undefined, ...read, ...usage };
  }

  #report(end: AttemptEnd, usage: TokenUsage): void {
    const { log } = this.#parts;
    const { model } = this;
    const estimates = this.#parts.estimates.of(this.call.caller.workspaceId);
    const { inputTokens, outputTokens, estimated, disbelieved } = usage;
    // Error text from upstream is kept out of the log and the ledger because it may contain secrets.
    if (end.status === "failed") log.warn("a model call failed", { model, reason: end.failure.reason });
    if (disbelieved !== undefined) log.warn("a model reported implausible usage", { model, disbelieved });
    const { answers, bytes } = this.#sent;
    const eachOutput = Math.ceil(outputTokens / answers);
    if (end.status === "succeeded" || eachOutput > estimates.output(model)) {
      estimates.noteOutput(model, eachOutput);
    }
    if (!estimated) estimates.noteInput(model, { sentBytes: bytes, inputTokens });
  }
}

const UNREPORTED: LanguageModelV4Usage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

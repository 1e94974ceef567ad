import { redact } from "../../base/log.ts";
import type { ParsedEntry } from "./parsed-entry.ts";

type SeqEntry = ParsedEntry & { readonly seq: number };

/** A tool call according to the entries about it. */
export interface ProvenCall {
  /** Seq of its intent or, if it was refused before anything was sent, of its only entry. */
  readonly seq: number;
  /** Null in entries from earlier versions. */
  readonly id: string | null;
  /** Undefined if the model invented a name that is not recorded. */
  readonly tool: string | undefined;
  /** RFC 3339. */
  readonly at: string | undefined;
  readonly outcomeSeq: number | null;
  /** As in the column `status` of its row. */
  readonly status: string;
  /** Micro-credits. */
  readonly price: number;
}

/** What a task has used, according to the outcomes of its calls. */
export interface ProvenUsage {
  /** Micro-credits. */
  readonly credits: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly steps: number;
}

const DISPATCH = "task.dispatch";
/** Codes of outcomes of calls that may have been carried out. */
const UNKNOWN = new Set<string | undefined>(["unknown", "interrupted"]);
const TOOL_NAME_LIMIT = 128;

/** What the ledger contains about one task. Entries MUST be taken in order. */
export class ProvenTask {
  /** The intent that dispatched it. */
  dispatch: SeqEntry | null = null;
  end: SeqEntry | null = null;
  /** Intents of calls without an outcome, by seq. */
  readonly open = new Map<number, ParsedEntry>();
  /** Outcomes and refusals of its calls, by seq. */
  readonly outcomes = new Map<number, ParsedEntry>();
  readonly #intents = new Map<number, ParsedEntry>();
  readonly #calls = new Map<number, ProvenCall>();
  readonly #answered = new Set<number>();
  #usage: ProvenUsage = { credits: 0, inputTokens: 0, outputTokens: 0, steps: 0 };
  #model: string | null = null;

  /** Sum of the outcomes of its calls. */
  get usage(): ProvenUsage {
    return this.#usage;
  }

  /** The model that was last called. */
  get model(): string | null {
    return this.#model;
  }

  /** The steps whose answers were accepted and saved. */
  get answered(): ReadonlySet<number> {
    return this.#answered;
  }

  /**
   * Its tool calls, whether made or refused, each in its latest state, since a call may be repeated after a restart.
   */
  get calls(): readonly ProvenCall[] {
    const last = new Map<string, ProvenCall>();
    const unnamed: ProvenCall[] = [];
    for (const call of this.#calls.values()) {
      if (call.id === null) unnamed.push(call);
      else last.set(call.id, call);
    }
    return [...unnamed, ...last.values()].sort((a, b) => a.seq - b.seq);
  }

  take(seq: number, entry: ParsedEntry): void {
    const { phase, action, ref } = entry;
    if (phase === "intent" && action === DISPATCH) {
      this.dispatch ??= { ...entry, seq };
    } else if (phase === "intent") {
      this.open.set(seq, entry);
      this.#intents.set(seq, entry);
      if (action === "tool.call") this.#calls.set(seq, openedBy(seq, entry));
      if (action === "model.call") this.#model = entry.model ?? null;
    } else if (phase === "outcome" || action === "tool.call") {
      this.outcomes.set(seq, entry);
      if (isRefusedCall(entry)) {
        this.#calls.set(seq, { ...openedBy(seq, entry), outcomeSeq: seq, status: "denied" });
      }
      if (phase !== "outcome" || ref === undefined) return;
      if (action === DISPATCH && ref === this.dispatch?.seq) this.end ??= { ...entry, seq };
      this.open.delete(ref);
      this.#close(seq, ref, entry);
    }
  }

  #close(seq: number, ref: number, entry: ParsedEntry): void {
    const intent = this.#intents.get(ref);
    if (!intent || intent.action !== entry.action) return;
    const { credits = 0, detail = {}, outcome } = entry;
    const isAnswer = entry.action === "model.call" && outcome === "succeeded";
    this.#usage = {
      credits: this.#usage.credits + credits,
      inputTokens: this.#usage.inputTokens + numberOf(detail.input_tokens),
      outputTokens: this.#usage.outputTokens + numberOf(detail.output_tokens),
      steps: this.#usage.steps + (isAnswer ? 1 : 0),
    };
    if (isAnswer && typeof intent.detail?.step === "number") this.#answered.add(intent.detail.step);
    const call = this.#calls.get(ref);
    if (call) this.#calls.set(ref, { ...call, outcomeSeq: seq, status: statusOf(entry) });
  }
}

function openedBy(seq: number, { ts, tool, detail }: ParsedEntry): ProvenCall {
  const id = typeof detail?.call === "string" ? detail.call : null;
  return { seq, id, tool, at: ts, outcomeSeq: null, status: "unknown", price: numberOf(detail?.price) };
}

/**
 * Whether the entry refuses a call that the task then shows. Entries about calls shown to people also contain a call
 * id.
 */
function isRefusedCall({ phase, action, outcome, detail }: ParsedEntry): boolean {
  return (
    phase === "single" && action === "tool.call" && outcome === "denied" && typeof detail?.call === "string"
  );
}

function statusOf({ outcome, code }: ParsedEntry): string {
  return outcome === "failed" && UNKNOWN.has(code) ? "unknown" : (outcome ?? "failed");
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** The columns of a tool call's row that the ledger also contains. */
export interface CallRow {
  readonly id: string;
  readonly tool: string;
  readonly status: string;
  readonly intentSeq: number;
  readonly outcomeSeq: number | null;
  readonly price: number;
}

/** The columns of a task's row that the ledger also contains, with its calls. */
export interface ComparedTaskRow extends ProvenUsage {
  readonly agent: string;
  readonly tier: number;
  readonly createdBy: string;
  readonly dispatchSeq: number;
  readonly model: string | null;
  /** Seq of the intent of the model call in flight. */
  readonly openModelCall: number | null;
  /** Micro-credits to charge for it if it is lost. */
  readonly openReserved: number;
  readonly toolsCalled: readonly CallRow[];
}

/**
 * Compares a task's rows with the ledger, in both directions: each row has its entry, and each entry its row.
 * @returns the name of what differs; null if nothing does
 */
export function taskDifference(row: ComparedTaskRow, proven: ProvenTask): string | null {
  const { dispatch, usage, model, open } = proven;
  // An agent's name that could be a secret is omitted from the dispatch.
  const { seq, agent = row.agent, actor, tier = row.tier } = dispatch ?? {};
  if (seq !== row.dispatchSeq) return "dispatch_seq";
  if (agent !== row.agent) return "agent";
  if (actor !== row.createdBy) return "created_by";
  if (tier !== row.tier) return "tier";
  if (usage.credits !== row.credits) return "credits";
  if (usage.inputTokens !== row.inputTokens) return "input_tokens";
  if (usage.outputTokens !== row.outputTokens) return "output_tokens";
  if (usage.steps !== row.steps) return "steps";
  if (model !== row.model) return "model";
  const models = [...open].filter(([, { action }]) => action === "model.call");
  const [[ref, intent] = [null, null]] = models;
  if (models.length > 1 || ref !== row.openModelCall) return "open_model_call";
  if (intent && numberOf(intent.detail?.reserved) !== row.openReserved) return "open_reserved";
  return areCallsProven(row.toolsCalled, proven) ? null : "tool_calls";
}

function areCallsProven(rows: readonly CallRow[], { calls, outcomes }: ProvenTask): boolean {
  const bySeq = new Map(rows.map((row) => [row.intentSeq, row]));
  if (bySeq.size !== rows.length) return false;
  for (const call of calls) {
    const row = bySeq.get(call.seq);
    bySeq.delete(call.seq);
    if (row ? !isRowOf(row, call) : !mayLackRow(call, outcomes)) return false;
  }
  return [...bySeq.values()].every((row) => isEarlierRefusal(row, outcomes));
}

function isRowOf(row: CallRow, { id, tool, outcomeSeq, status, price }: ProvenCall): boolean {
  return (
    (id ?? row.id) === row.id &&
    (tool === undefined || tool === row.tool || tool === redact(row.tool).slice(0, TOOL_NAME_LIMIT)) &&
    outcomeSeq === row.outcomeSeq &&
    status === row.status &&
    price === row.price
  );
}

/**
 * A call made by an earlier version may have been repeated after it was lost; its row then names the later intent.
 */
function mayLackRow({ id, outcomeSeq }: ProvenCall, outcomes: ProvenTask["outcomes"]): boolean {
  return id === null && outcomeSeq !== null && outcomes.get(outcomeSeq)?.code === "interrupted";
}

/** Whether the row belongs to a call that an earlier version refused, in an entry that does not name the call. */
function isEarlierRefusal(
  { intentSeq, outcomeSeq, status }: CallRow,
  outcomes: ProvenTask["outcomes"],
): boolean {
  const { phase, action, outcome, detail } = outcomes.get(intentSeq) ?? {};
  const isRefusal = phase === "single" && action === "tool.call" && outcome === "denied";
  return isRefusal && detail?.call === undefined && outcomeSeq === intentSeq && status === "denied";
}

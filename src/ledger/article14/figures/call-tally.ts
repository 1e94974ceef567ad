import type { ReportEntryFields } from "../format/entry.ts";
import { CappedTally } from "./capped.ts";

const NAMES = 100;

/** Calls of one model or tool. `credits` are micro-credits. */
export interface CallTally {
  /** An intent was recorded before anything was sent. */
  sent: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  /** Refused for any reason before anything was sent. */
  refused: number;
  credits: number;
  inputTokens: number;
  outputTokens: number;
  milliseconds: number;
  /** Sent because another model of the tier's route had failed. */
  fallbacks: number;
}

export function noCalls(): CallTally {
  return {
    sent: 0,
    succeeded: 0,
    failed: 0,
    cancelled: 0,
    refused: 0,
    credits: 0,
    inputTokens: 0,
    outputTokens: 0,
    milliseconds: 0,
    fallbacks: 0,
  };
}

/**
 * Calls by the name of their model or tool. Only a name that was called takes a place: otherwise anyone could have
 * calls refused under invented names, and so hide the names that they really call.
 */
export class CallsByName {
  readonly #called = new CappedTally<CallTally>(NAMES, noCalls);
  /** Refusals under a name before it was called. Further names are counted together. */
  readonly #refused = new CappedTally<CallTally>(NAMES, noCalls);

  add(name: string, entry: ReportEntryFields): void {
    const isCall = entry.phase === "intent" || entry.phase === "outcome";
    countCall((isCall || this.#called.has(name) ? this.#called : this.#refused).of(name), entry);
  }

  /** The most used first. */
  sorted(): (readonly [name: string, tally: CallTally])[] {
    const before = new Map(this.#refused.sorted(() => 0));
    return this.#called
      .sorted(({ sent, refused }) => sent + refused)
      .map(([name, tally]) => [name, sumOf([tally, before.get(name) ?? noCalls()])]);
  }

  /** The total of all called names past the cap; null if there are none. */
  get others(): CallTally | null {
    return this.#called.others;
  }

  /** The total of refusals under names that were not called, or past the cap; null if there are none. */
  get notCalled(): CallTally | null {
    const named = this.#refused.sorted(() => 0).filter(([name]) => !this.#called.has(name));
    const total = sumOf([...named.map(([, tally]) => tally), this.#refused.others ?? noCalls()]);
    return total.refused + total.failed === 0 ? null : total;
  }
}

function sumOf(tallies: readonly CallTally[]): CallTally {
  const total = noCalls();
  for (const tally of tallies) {
    for (const key of Object.keys(total) as (keyof CallTally)[]) total[key] += tally[key];
  }
  return total;
}

export function countCall(
  tally: CallTally,
  { phase, outcome, credits, detail = {} }: ReportEntryFields,
): void {
  // Answered here: nothing was sent.
  if (phase === "single" && outcome === "succeeded") return;
  if (phase === "intent") {
    tally.sent += 1;
    if (numberOf(detail.attempt) > 1) tally.fallbacks += 1;
  } else if (outcome === "denied") tally.refused += 1;
  else if (outcome === "succeeded" || outcome === "failed" || outcome === "cancelled") {
    tally[outcome] += 1;
    tally.credits += credits ?? 0;
    tally.inputTokens += numberOf(detail.input_tokens);
    tally.outputTokens += numberOf(detail.output_tokens);
    tally.milliseconds += numberOf(detail.duration_ms);
  }
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

import { cappedMicros } from "../../base/credits.ts";
import { NOT_MEASURED } from "./latency.ts";
import type { UsageCount, UsageKind } from "./record.ts";

/** Usage in a slot, of one agent or of all callers. */
export interface UsageFacts {
  /** Micro-credits. */
  credits: number;
  inputTokens: number;
  outputTokens: number;
  /** Counts by `<kind>.<outcome>`. */
  readonly outcomes: Map<string, number>;
  /** Counts by latency class. */
  readonly latency: Readonly<Record<UsageKind, number[]>>;
  /** Micro-credits by name, if greater than 0. */
  readonly models: Map<string, number>;
  readonly tools: Map<string, number>;
}

export function noUsage(): UsageFacts {
  return {
    credits: 0,
    inputTokens: 0,
    outputTokens: 0,
    outcomes: new Map(),
    latency: { task: [], model: [], tool: [] },
    models: new Map(),
    tools: new Map(),
  };
}

export function addUsage(facts: UsageFacts, row: UsageCount): void {
  const { kind, name, outcome, bucket, count, credits } = row;
  facts.credits = cappedMicros(facts.credits + credits);
  facts.inputTokens += row.inputTokens;
  facts.outputTokens += row.outputTokens;
  addTo(facts.outcomes, `${kind}.${outcome}`, count);
  if (bucket !== NOT_MEASURED) addAt(facts.latency[kind], bucket, count);
  if (credits > 0 && kind === "model") addTo(facts.models, name, credits);
  if (credits > 0 && kind === "tool") addTo(facts.tools, name, credits);
}

/** Adds `more` to `facts`. */
export function mergeUsage(facts: UsageFacts, more: UsageFacts): void {
  facts.credits = cappedMicros(facts.credits + more.credits);
  facts.inputTokens += more.inputTokens;
  facts.outputTokens += more.outputTokens;
  for (const group of ["outcomes", "models", "tools"] as const) {
    for (const [name, value] of more[group]) addTo(facts[group], name, value);
  }
  for (const kind of ["task", "model", "tool"] as const) {
    for (const [index, count] of more.latency[kind].entries()) addAt(facts.latency[kind], index, count);
  }
}

function addTo(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value);
}

/** @param counts extended with zeros up to the index */
function addAt(counts: number[], index: number, count: number): void {
  while (counts.length <= index) counts.push(0);
  counts[index] = (counts[index] ?? 0) + count;
}

interface StoredFacts {
  readonly tokens: readonly [input: number, output: number];
  readonly outcomes: Readonly<Record<string, number>>;
  readonly latency: Readonly<Record<UsageKind, number[]>>;
  readonly models: Readonly<Record<string, number>>;
  readonly tools: Readonly<Record<string, number>>;
}

/** Encodes everything for the store except the credits, which have their own column. */
export function encodeUsage(facts: UsageFacts): string {
  const stored: StoredFacts = {
    tokens: [facts.inputTokens, facts.outputTokens],
    outcomes: Object.fromEntries(facts.outcomes),
    latency: facts.latency,
    models: Object.fromEntries(facts.models),
    tools: Object.fromEntries(facts.tools),
  };
  return JSON.stringify(stored);
}

export function decodeUsage(credits: number, text: string): UsageFacts {
  const { tokens, outcomes, latency, models, tools } = JSON.parse(text) as StoredFacts;
  return {
    credits,
    inputTokens: tokens[0],
    outputTokens: tokens[1],
    outcomes: new Map(Object.entries(outcomes)),
    latency,
    models: new Map(Object.entries(models)),
    tools: new Map(Object.entries(tools)),
  };
}

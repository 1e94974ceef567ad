import { cappedMicros } from "../../base/credits.ts";
import { NOT_MEASURED } from "./latency.ts";
import type { UsageCount, UsageKind } from "./record.ts";

const KINDS = ["task", "model", "tool", "client", "count"] as const satisfies readonly UsageKind[];

/**
 * Maximum number of tool names in one slot. Without a limit, adding and removing connectors could create any number
 * of names.
 */
const MOST_TOOLS = 200;
/** The name under which all further tools are counted. */
const OTHER_TOOLS = "(other)";

/** Usage in a slot, of one agent or of all callers. */
export interface UsageFacts {
  /** Micro-credits. */
  credits: number;
  inputTokens: number;
  outputTokens: number;
  /** The part of the above that clients' own model calls have used. */
  readonly clients: { credits: number; inputTokens: number; outputTokens: number };
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
    clients: { credits: 0, inputTokens: 0, outputTokens: 0 },
    outcomes: new Map(),
    latency: noLatency(),
    models: new Map(),
    tools: new Map(),
  };
}

function noLatency(): UsageFacts["latency"] {
  return { task: [], model: [], tool: [], client: [], count: [] };
}

export function addUsage(facts: UsageFacts, row: UsageCount): void {
  const { kind, name, outcome, bucket, count, credits } = row;
  // A client's call has a row as a model call too: it counts once in the totals.
  addAmounts(kind === "client" ? facts.clients : facts, row);
  addTo(facts.outcomes, `${kind}.${outcome}`, count);
  if (bucket !== NOT_MEASURED) addAt(facts.latency[kind], bucket, count);
  if (credits > 0 && kind === "model") addTo(facts.models, name, credits);
  if (credits > 0 && kind === "tool") addTool(facts.tools, name, credits);
}

/** Adds `more` to `facts`. */
export function mergeUsage(facts: UsageFacts, more: UsageFacts): void {
  addAmounts(facts, more);
  addAmounts(facts.clients, more.clients);
  for (const group of ["outcomes", "models"] as const) {
    for (const [name, value] of more[group]) addTo(facts[group], name, value);
  }
  for (const [name, value] of more.tools) addTool(facts.tools, name, value);
  for (const kind of KINDS) {
    for (const [index, count] of more.latency[kind].entries()) addAt(facts.latency[kind], index, count);
  }
}

function addAmounts(sums: UsageFacts["clients"], more: Readonly<UsageFacts["clients"]>): void {
  sums.credits = cappedMicros(sums.credits + more.credits);
  sums.inputTokens += more.inputTokens;
  sums.outputTokens += more.outputTokens;
}

function addTool(sums: Map<string, number>, name: string, value: number): void {
  addTo(sums, sums.has(name) || sums.size < MOST_TOOLS ? name : OTHER_TOOLS, value);
}

function addTo(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value);
}

/** @param counts extended with zeros up to the index */
function addAt(counts: number[], index: number, count: number): void {
  while (counts.length <= index) counts.push(0);
  counts[index] = (counts[index] ?? 0) + count;
}

/** Kinds and amounts that earlier versions did not count are absent from the data that they stored. */
interface StoredFacts {
  readonly tokens: readonly [input: number, output: number];
  readonly clients?: readonly [credits: number, input: number, output: number];
  readonly outcomes: Readonly<Record<string, number>>;
  readonly latency: Readonly<Partial<Record<UsageKind, number[]>>>;
  readonly models: Readonly<Record<string, number>>;
  readonly tools: Readonly<Record<string, number>>;
}

/** Encodes everything for the store except the credits, which have their own column. */
export function encodeUsage(facts: UsageFacts): string {
  const stored: StoredFacts = {
    tokens: [facts.inputTokens, facts.outputTokens],
    clients: [facts.clients.credits, facts.clients.inputTokens, facts.clients.outputTokens],
    outcomes: Object.fromEntries(facts.outcomes),
    latency: facts.latency,
    models: Object.fromEntries(facts.models),
    tools: Object.fromEntries(facts.tools),
  };
  return JSON.stringify(stored);
}

export function decodeUsage(credits: number, text: string): UsageFacts {
  const { tokens, clients = [0, 0, 0], outcomes, latency, models, tools } = JSON.parse(text) as StoredFacts;
  return {
    credits,
    inputTokens: tokens[0],
    outputTokens: tokens[1],
    clients: { credits: clients[0], inputTokens: clients[1], outputTokens: clients[2] },
    outcomes: new Map(Object.entries(outcomes)),
    latency: { ...noLatency(), ...latency },
    models: new Map(Object.entries(models)),
    tools: new Map(Object.entries(tools)),
  };
}

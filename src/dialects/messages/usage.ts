import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import { field, tokenCount } from "../json.ts";

/**
 * The usage of a message; null if there is none. `input_tokens` excludes tokens written to or read from the cache.
 */
export function messagesUsage(usage: unknown): LanguageModelV4Usage | null {
  if (typeof usage !== "object" || usage === null) return null;
  const { input: noCache, output } = countsOf(usage);
  const cacheRead = tokenCount(field(usage, "cache_read_input_tokens"));
  const cacheWrite = tokenCount(field(usage, "cache_creation_input_tokens"));
  const total = noCache === undefined ? undefined : noCache + (cacheRead ?? 0) + (cacheWrite ?? 0);
  const reasoning = tokenCount(field(field(usage, "output_tokens_details"), "thinking_tokens"));
  const text = output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0));
  return {
    inputTokens: { total, noCache, cacheRead, cacheWrite },
    outputTokens: { total: output, reasoning, text },
    raw: usage as NonNullable<LanguageModelV4Usage["raw"]>,
  };
}

/** The maximum number of count names kept for a message. */
const MOST_NAMES = 128;

/**
 * Adds a later report to an earlier one. Counts are cumulative: each count in the later report replaces the earlier
 * one.
 */
export function addUsage(before: Record<string, unknown>, usage: unknown): void {
  if (typeof usage !== "object" || usage === null) return;
  let names = Object.keys(before).length;
  for (const [name, value] of Object.entries(usage)) {
    if (value === null) continue;
    const isNew = !(name in before);
    if (isNew && names >= MOST_NAMES) continue;
    if (isNew) names++;
    before[name] = value;
  }
}

/** The maximum number of requests in one message. They are counted again with every event that has a count. */
const MOST_ITERATIONS = 128;

interface Counts {
  readonly input: number | undefined;
  readonly output: number | undefined;
}

/**
 * The tokens used by the model itself. If a message took several requests (`iterations`), the counts at the top level
 * leave out requests that compacted the conversation, unless another model answered in its place.
 */
function countsOf(usage: object): Counts {
  const given = field(usage, "iterations");
  const iterations: readonly unknown[] = Array.isArray(given) ? given : [];
  if (iterations.length > MOST_ITERATIONS) return { input: undefined, output: undefined };
  const isFallback = iterations.some((each) => field(each, "type") === "fallback_message");
  const own = iterations.filter((each) => OWN.has(field(each, "type")));
  if (isFallback || own.length === 0) return countsIn(usage);
  const counts = own.map(countsIn);
  return {
    input: sumOf(counts.map(({ input }) => input)),
    output: sumOf(counts.map(({ output }) => output)),
  };
}

const OWN: ReadonlySet<unknown> = new Set(["compaction", "message"]);

function countsIn(usage: unknown): Counts {
  return {
    input: tokenCount(field(usage, "input_tokens")),
    output: tokenCount(field(usage, "output_tokens")),
  };
}

/** Undefined if any of the counts is. */
function sumOf(counts: readonly (number | undefined)[]): number | undefined {
  return counts.reduce(
    (sum, count) => (sum === undefined || count === undefined ? undefined : sum + count),
    0,
  );
}

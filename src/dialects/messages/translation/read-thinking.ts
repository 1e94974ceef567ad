import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { invalidAt, objectAt, textAt } from "../../translation/fields.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { countAt, memberAt } from "./members.ts";

type Reasoning = NonNullable<LanguageModelV4CallOptions["reasoning"]>;

/** How much thinking a model is asked to do. */
export interface Thinking {
  readonly reasoning: Reasoning | undefined;
  /** Whether its thoughts are requested; undefined if the request does not say. */
  readonly isOn: boolean | undefined;
  /** Whether only the signatures of its thoughts are requested. */
  readonly isOmitted: boolean;
}

const EFFORTS: ReadonlySet<string> = new Set(["low", "medium", "high", "xhigh", "max"]);

/**
 * The share of an answer's tokens that each effort allows for thinking. This is the AI SDK's own table, with which it
 * converts an effort into a number of tokens (`mapReasoningToProviderBudget` of @ai-sdk/provider-utils).
 */
const SHARES: readonly (readonly [Reasoning, number])[] = [
  ["minimal", 0.02],
  ["low", 0.1],
  ["medium", 0.3],
  ["high", 0.6],
  ["xhigh", 0.9],
  ["max", 0.95],
];

/**
 * Reads `thinking` together with the effort. A number of tokens becomes the effort whose share of `max_tokens` is
 * nearest. Without thinking, an effort has no effect and is left out.
 */
export function readThinking(value: unknown, effort: string | undefined, maxTokens: number): Thinking {
  const given = effort === undefined ? undefined : readEffort(effort);
  if (value === undefined || value === null) return { reasoning: given, isOn: undefined, isOmitted: false };
  const thinking = objectAt(value, "thinking");
  const { type } = thinking;
  if (type === "disabled") {
    refuseUnknown(thinking, new Set(["type"]), "thinking");
    return { reasoning: "none", isOn: false, isOmitted: false };
  }
  const isOmitted = readDisplay(memberAt(thinking, "display", "thinking", textAt));
  if (type === "adaptive") {
    refuseUnknown(thinking, new Set(["type", "display"]), "thinking");
    return { reasoning: given, isOn: true, isOmitted };
  }
  if (type !== "enabled")
    throw unsupported("thinking.type", "cannot be translated for this model's provider.");
  refuseUnknown(thinking, new Set(["type", "display", "budget_tokens"]), "thinking");
  const budget = countAt(thinking.budget_tokens, "thinking.budget_tokens");
  return { reasoning: nearestEffort(budget / maxTokens), isOn: true, isOmitted };
}

function readEffort(effort: string): Reasoning {
  if (EFFORTS.has(effort)) return effort as Reasoning;
  throw invalidAt("output_config.effort", "must be low, medium, high, xhigh or max");
}

function readDisplay(display: string | undefined): boolean {
  if (display === undefined || display === "summarized") return false;
  if (display === "omitted") return true;
  throw unsupported("thinking.display", "must be summarized or omitted.");
}

function nearestEffort(share: number): Reasoning {
  const distance = ([, of]: readonly [Reasoning, number]) => Math.abs(share - of);
  return SHARES.reduce((nearest, next) => (distance(next) < distance(nearest) ? next : nearest))[0];
}

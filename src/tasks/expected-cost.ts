import { estimateTokens, type Message, promptBytes } from "../agents/index.ts";
import { cost, type Price } from "../base/credits.ts";

/** Of a model that has answered nothing yet: more than most answers, so that the first calls of a busy start reserve enough. */
const FIRST_OUTPUT_TOKENS = 1_000;
/** Answers of a model that are remembered. */
const REMEMBERED = 16;
/** Models that are remembered; the one that was heard of first goes. */
const MODEL_LIMIT = 1_000;

/**
 * How long the answers of each model have been lately. A call is expected to give the longest of the last few: what is reserved
 * too much is given back when the call ends, and what is reserved too little is overspent. An estimate that was unlucky costs
 * no more than that call's difference.
 */
export class RecentOutputs {
  readonly #models = new Map<string, number[]>();

  note(model: string, outputTokens: number): void {
    const recent = this.#models.get(model) ?? [];
    recent.push(outputTokens);
    if (recent.length > REMEMBERED) recent.shift();
    this.#models.set(model, recent);
    if (this.#models.size <= MODEL_LIMIT) return;
    for (const first of this.#models.keys()) {
      this.#models.delete(first);
      return;
    }
  }

  /** Tokens that the next answer is expected to have. */
  expected(model: string): number {
    const recent = this.#models.get(model);
    return recent ? Math.max(...recent) : FIRST_OUTPUT_TOKENS;
  }
}

/**
 * Micro-credits that a call is expected to cost: what it is sent, counted as the framework does where a provider counts nothing, and
 * `outputTokens`. 0 for a free model alone: one with any price reserves a millionth at least.
 */
export function expectedCost(
  price: Price,
  instructions: string | null,
  messages: readonly Message[],
  outputTokens: number,
): number {
  if (price.input === 0 && price.output === 0) return 0;
  const inputTokens = estimateTokens(promptBytes(instructions ?? undefined, messages));
  return Math.max(1, cost(price, inputTokens, outputTokens));
}

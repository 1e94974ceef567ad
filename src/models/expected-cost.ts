import { cost, dearest, isFree, type Price } from "../base/call-cost.ts";

/**
 * Used for a model that has not answered yet. Larger than most answers, so that the first calls after startup reserve
 * enough, even if there are many.
 */
const FIRST_OUTPUT_TOKENS = 1_000;
/** Longer than the longest answers of current models. */
const MOST_OUTPUT_TOKENS = 131_072;
/** The maximum number of calls remembered for each model. */
const REMEMBERED = 16;
/** The maximum number of models remembered. Beyond that, the model that was called first is forgotten. */
const MODEL_LIMIT = 1_000;

/** The head of a request, its model and options, which are not included in its measured bytes. */
const HEAD_BYTES = 512;
/** Tokens per byte for a model without reported usage: half of the maximum for the densest text. */
const FIRST_RATIO = 1 / 2;
/** The lowest ratio assumed for any model. Ordinary English has one token per four bytes, JSON one per three. */
const LEAST_RATIO = 1 / 3;
/** Each token sent takes at least one byte. Any further tokens are added by the provider. */
const MOST_RATIO = 1;
/** Shorter requests are not used to estimate the ratio, since most of their tokens may be added by the provider. */
const TELLING_BYTES = 4_096;

/** A call whose tokens were counted by its provider. */
export interface CountedCall {
  readonly sentBytes: number;
  readonly inputTokens: number;
}

interface ModelHistory {
  readonly counted: CountedCall[];
  readonly outputs: number[];
}

/**
 * Records what recent calls of each model used, and estimates the next one. The estimate assumes as many tokens per
 * byte as in the densest of the recent long requests, as many additional tokens as in any recent request (from the
 * provider's system prompts and templates), and an answer as long as the longest recent one. Anything reserved in
 * excess is released when the call ends; if too little was reserved, the budget is overspent.
 */
export class TokenEstimates {
  readonly #models = new Map<string, ModelHistory>();

  /** Notes how many tokens a provider counted for a request. */
  noteInput(model: string, call: CountedCall): void {
    push(this.#historyOf(model).counted, call);
  }

  /** Notes the length of a complete answer. */
  noteOutput(model: string, outputTokens: number): void {
    push(this.#historyOf(model).outputs, outputTokens);
  }

  /** Expected tokens of a request of this size. */
  input(model: string, sentBytes: number): number {
    const counted = this.#models.get(model)?.counted ?? [];
    const telling = counted.filter((call) => call.sentBytes >= TELLING_BYTES);
    const seen = Math.max(...telling.map((call) => call.inputTokens / (call.sentBytes + HEAD_BYTES)));
    const ratio = telling.length === 0 ? FIRST_RATIO : Math.min(MOST_RATIO, Math.max(LEAST_RATIO, seen));
    const counts = (bytes: number): number => Math.ceil((bytes + HEAD_BYTES) * ratio);
    const own = Math.max(0, ...counted.map((call) => call.inputTokens - counts(call.sentBytes)));
    return counts(sentBytes) + own;
  }

  /**
   * Expected tokens of the next answer.
   * @param limit the request's own limit, which is used until enough answers are known; 0 if it has none
   */
  output(model: string, limit = 0): number {
    const outputs = this.#models.get(model)?.outputs ?? [];
    const learned = outputs.length === 0 ? FIRST_OUTPUT_TOKENS : Math.max(...outputs);
    return outputs.length < REMEMBERED ? Math.max(learned, Math.min(limit, MOST_OUTPUT_TOKENS)) : learned;
  }

  #historyOf(model: string): ModelHistory {
    const known = this.#models.get(model);
    if (known) return known;
    const history: ModelHistory = { counted: [], outputs: [] };
    this.#models.set(model, history);
    if (this.#models.size > MODEL_LIMIT) {
      for (const first of this.#models.keys()) {
        this.#models.delete(first);
        break;
      }
    }
    return history;
  }
}

/** Separate estimates for each workspace, so that no workspace learns what another has sent and received. */
export class WorkspaceEstimates {
  readonly #workspaces = new Map<number, TokenEstimates>();

  of(workspaceId: number): TokenEstimates {
    const known = this.#workspaces.get(workspaceId);
    if (known) return known;
    const estimates = new TokenEstimates();
    this.#workspaces.set(workspaceId, estimates);
    return estimates;
  }
}

function push<Value>(recent: Value[], value: Value): void {
  recent.push(value);
  if (recent.length > REMEMBERED) recent.shift();
}

const ONE_ANSWER = { answers: 1, mostTokens: 0 };

/**
 * The expected cost of a call in micro-credits, at the price of its most expensive tokens. It is 0 only for a free
 * model: with any price, at least one micro-credit is reserved. `sentBytes` is called only if the price depends on
 * it.
 * @param answers how many answers are requested, and the maximum tokens that the request allows for each
 */
export function expectedCost(
  price: Price,
  estimates: TokenEstimates,
  model: string,
  sentBytes: () => number,
  { answers, mostTokens }: { readonly answers: number; readonly mostTokens: number } = ONE_ANSWER,
): number {
  if (isFree(price)) return 0;
  const highest = dearest(price);
  const inputTokens = highest.input === 0 ? 0 : estimates.input(model, sentBytes());
  const outputTokens = answers * estimates.output(model, mostTokens);
  return Math.max(1, cost(highest, { inputTokens, outputTokens }));
}

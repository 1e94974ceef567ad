import { cost, type Price } from "../../base/credits.ts";

/** Of a model that has answered nothing yet: more than most answers, so that the first calls of a busy start reserve enough. */
const FIRST_OUTPUT_TOKENS = 1_000;
/** Calls of a model that are remembered. */
const REMEMBERED = 16;
/** Models that are remembered; the one that was first called goes. */
const MODEL_LIMIT = 1_000;

/** A request's head, its model and options, which its measured bytes leave out. */
const HEAD_BYTES = 512;
/** Tokens a byte of a model that has reported nothing yet: half of what the densest text can come to. */
const FIRST_RATIO = 1 / 2;
/** No model is taken to need fewer: ordinary English has a token for four bytes, JSON one for three. */
const LEAST_RATIO = 1 / 3;
/** A token has no less than a byte of what is sent; what is counted beyond that is the provider's own. */
const MOST_RATIO = 1;
/** Of shorter requests most tokens can be the provider's own: they say nothing about a ratio. */
const TELLING_BYTES = 4_096;

/** A call whose tokens its provider has counted. */
export interface CountedCall {
  readonly sentBytes: number;
  readonly inputTokens: number;
}

interface ModelHistory {
  readonly counted: CountedCall[];
  readonly outputs: number[];
}

/**
 * What the calls of each model have come to lately, and what the next one is expected to. It is taken to need as many tokens a
 * byte as the densest of the last long requests, to get as many on top as any request got (system prompts of the provider,
 * templates), and to be answered at the length of the longest of the last answers. What is reserved too much is given
 * back when the call ends, and what is reserved too little is overspent.
 */
export class TokenEstimates {
  readonly #models = new Map<string, ModelHistory>();

  /** Takes what a provider counted of what it was sent. */
  noteInput(model: string, call: CountedCall): void {
    push(this.#historyOf(model).counted, call);
  }

  /** Takes the length of a whole answer. */
  noteOutput(model: string, outputTokens: number): void {
    push(this.#historyOf(model).outputs, outputTokens);
  }

  /** Tokens that so many bytes are expected to be counted as. */
  input(model: string, sentBytes: number): number {
    const counted = this.#models.get(model)?.counted ?? [];
    const telling = counted.filter((call) => call.sentBytes >= TELLING_BYTES);
    const seen = Math.max(...telling.map((call) => call.inputTokens / (call.sentBytes + HEAD_BYTES)));
    const ratio = telling.length === 0 ? FIRST_RATIO : Math.min(MOST_RATIO, Math.max(LEAST_RATIO, seen));
    const counts = (bytes: number): number => Math.ceil((bytes + HEAD_BYTES) * ratio);
    const own = Math.max(0, ...counted.map((call) => call.inputTokens - counts(call.sentBytes)));
    return counts(sentBytes) + own;
  }

  /** Tokens that the next answer is expected to have. */
  output(model: string): number {
    const outputs = this.#models.get(model)?.outputs ?? [];
    return outputs.length === 0 ? FIRST_OUTPUT_TOKENS : Math.max(...outputs);
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

function push<Value>(recent: Value[], value: Value): void {
  recent.push(value);
  if (recent.length > REMEMBERED) recent.shift();
}

/**
 * Micro-credits that a call is expected to cost. 0 only for a free model: one with any price reserves a millionth at least.
 * `sentBytes` is asked only where a price hangs on it.
 */
export function expectedCost(
  price: Price,
  estimates: TokenEstimates,
  model: string,
  sentBytes: () => number,
): number {
  if (price.input === 0 && price.output === 0) return 0;
  const inputTokens = price.input === 0 ? 0 : estimates.input(model, sentBytes());
  return Math.max(1, cost(price, inputTokens, estimates.output(model)));
}

/**
 * Tokens, as the provider counted them. `estimated` is true when a part of them was estimated from what was sent and received
 * instead, because the provider reported nothing that can be true.
 */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly estimated: boolean;
  /** The counts that the provider reported and that cannot be true. Absent if there are none. */
  readonly disbelieved?: Disbelieved;
}

/** Names of token counts, in this order. */
export type Disbelieved = "input_tokens" | "output_tokens" | "input_tokens output_tokens";

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, estimated: false };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    estimated: a.estimated || b.estimated,
  };
}

/** Tokens of so many bytes of UTF-8, at four bytes a token, rounded up. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

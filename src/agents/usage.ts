/**
 * Tokens, as the provider counted them. `estimated` is true when a part of them was estimated from what was sent and received
 * instead, because the provider reported nothing that can be true.
 */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly estimated: boolean;
}

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

/**
 * Credits are counted in integers of a millionth (micro-credits), so that sums are exact. Prices are credits per 1,000
 * tokens, at most six decimals.
 */
export const MICROS_PER_CREDIT = 1_000_000;

/** Micro-credits for 1,000 tokens in and out. */
export interface Price {
  readonly input: number;
  readonly output: number;
}

const GREATEST = BigInt(Number.MAX_SAFE_INTEGER);

export const FREE: Price = { input: 0, output: 0 };

/** Credits as written in a configuration to micro-credits; undefined when negative, too large or finer than a millionth. */
export function toMicros(credits: number): number | undefined {
  const micros = Math.round(credits * MICROS_PER_CREDIT);
  if (!Number.isSafeInteger(micros) || micros < 0) return undefined;
  // Division of two exact integers rounds to the number nearest to the decimal, which is what was parsed from it.
  return micros / MICROS_PER_CREDIT === credits ? micros : undefined;
}

/** Micro-credits as the decimal number of credits that the API shows. */
export function toCredits(micros: number): number {
  return micros / MICROS_PER_CREDIT;
}

/**
 * The cost of one call in micro-credits, rounded half up to a millionth once, over input and output together. Always a
 * safe integer: where price and tokens come to more (nine billion credits), it is the greatest there is, and what is
 * above that is not charged.
 */
export function cost(price: Price, inputTokens: number, outputTokens: number): number {
  const thousandths = BigInt(inputTokens) * BigInt(price.input) + BigInt(outputTokens) * BigInt(price.output);
  const micros = (thousandths + 500n) / 1000n;
  return micros < GREATEST ? Number(micros) : Number.MAX_SAFE_INTEGER;
}

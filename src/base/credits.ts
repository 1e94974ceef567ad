/**
 * Credits are counted in integer millionths (micro-credits), so sums are exact. Prices are credits per 1,000 tokens,
 * with at most six decimals.
 */
export const MICROS_PER_CREDIT = 1_000_000;

/** Micro-credits per 1,000 input and output tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
}

const GREATEST = BigInt(Number.MAX_SAFE_INTEGER);

export const FREE: Price = { input: 0, output: 0 };

/**
 * Converts credits in a configuration to micro-credits. Undefined if negative, too large or finer than a millionth.
 */
export function toMicros(credits: number): number | undefined {
  const micros = Math.round(credits * MICROS_PER_CREDIT);
  if (!Number.isSafeInteger(micros) || micros < 0) return undefined;
  // Dividing two exact integers gives the number nearest to the decimal, which is also what parsing the decimal gave.
  return micros / MICROS_PER_CREDIT === credits ? micros : undefined;
}

/**
 * Sums stop at the greatest amount, as costs do: a sum beyond it could be neither written to the ledger nor read from
 * the store as an integer.
 */
export function cappedMicros(micros: number): number {
  return Math.min(micros, Number.MAX_SAFE_INTEGER);
}

/** SQL for the sum of two amounts, each of which is at most the greatest one. */
export function cappedSum(one: string, other: string): string {
  return `CASE WHEN ${one} + ${other} > ${GREATEST} THEN ${GREATEST} ELSE ${one} + ${other} END`;
}

/** Converts micro-credits to the decimal number of credits that the API shows. */
export function toCredits(micros: number): number {
  return micros / MICROS_PER_CREDIT;
}

/**
 * The cost of one call in micro-credits, rounded half up once, over input and output together. Always a safe integer:
 * a higher cost (above nine billion credits) is capped, and the rest is not charged.
 */
export function cost(price: Price, inputTokens: number, outputTokens: number): number {
  const thousandths = BigInt(inputTokens) * BigInt(price.input) + BigInt(outputTokens) * BigInt(price.output);
  const micros = (thousandths + 500n) / 1000n;
  return micros < GREATEST ? Number(micros) : Number.MAX_SAFE_INTEGER;
}

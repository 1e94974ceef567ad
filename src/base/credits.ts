/**
 * Credits are counted in integer millionths (micro-credits), so sums are exact. Prices are credits per 1,000 tokens,
 * with at most six decimals.
 */
export const MICROS_PER_CREDIT = 1_000_000;

const GREATEST = Number.MAX_SAFE_INTEGER;

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
  return Math.min(micros, GREATEST);
}

/** SQL for the sum of two amounts, each of which is at most the greatest one. */
export function cappedSum(one: string, other: string): string {
  return `CASE WHEN ${one} + ${other} > ${GREATEST} THEN ${GREATEST} ELSE ${one} + ${other} END`;
}

/** Converts micro-credits to the decimal number of credits that the API shows. */
export function toCredits(micros: number): number {
  return micros / MICROS_PER_CREDIT;
}

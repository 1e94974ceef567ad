import { mayBeRepeated } from "./errors.ts";

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
const MOST_ATTEMPTS = 12;

export interface RepeatOptions {
  /** No attempt begins later than this after the first failure. */
  readonly limitMs: number;
  readonly mostAttempts?: number;
  readonly mayRepeat?: (error: unknown) => boolean;
  readonly now?: () => number;
}

/**
 * Runs work again while its failures may pass: lost connections, conflicts between transactions. Pauses grow from 10 to
 * 500 ms. Half of each pause is random, so nodes that conflict do not meet again.
 *
 * @throws the error of the last attempt
 */
export async function repeat<Result>(
  {
    limitMs,
    mostAttempts = MOST_ATTEMPTS,
    mayRepeat = mayBeRepeated,
    now = () => performance.now(),
  }: RepeatOptions,
  work: (attempt: number) => Promise<Result>,
): Promise<Result> {
  let deadline = Number.POSITIVE_INFINITY;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt === 1) deadline = now() + limitMs;
      if (!mayRepeat(error) || attempt >= mostAttempts || now() >= deadline) throw error;
    }
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
    await Bun.sleep(pause / 2 + (Math.random() * pause) / 2);
  }
}

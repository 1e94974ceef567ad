import { Problem } from "../base/errors.ts";

/** What another call, or another node, has changed since it was looked up. */
export class Raced extends Error {
  override readonly name = "Raced";
}

/** Enough for a dozen nodes that rewrite the same segment all the time. */
const MOST_ATTEMPTS = 40;
/** Races within a process are decided at once. Beyond that, others are left some time. */
const AT_ONCE = 3;
const LONGEST_PAUSE_MS = 200;

/**
 * Runs work again for as long as it loses races: what it read has changed before it could write.
 * @throws Problem 429 `queue_full` after too many attempts; whatever else `work` throws
 */
export async function repeatIfRaced<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Raced)) throw error;
      if (attempt === MOST_ATTEMPTS)
        throw new Problem("queue_full", "Too many documents of this scope change at the same time.", {
          cause: error,
        });
    }
    // Random, so nodes that lost the same race do not meet again.
    if (attempt >= AT_ONCE) await Bun.sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, attempt * 10));
  }
}

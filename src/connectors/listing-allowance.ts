import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Bucket, type BucketRule, fullBucket, take } from "../limits/bucket.ts";
import { ConnectorError } from "./source.ts";

/** A workspace may set up all of its connectors in one go, and refresh one every two seconds from then on. */
export const LISTING_RULE: BucketRule = { capacity: 240, perSecond: 0.5 };
/** Listings of one workspace at once: each holds a part of what its upstream sends, parsed. */
export const LISTINGS_AT_ONCE = 8;

interface WaitingListing {
  begin(): void;
}

/**
 * How often and how many at once a workspace may have connectors asked for their tools. Each listing costs a download, parsing and
 * a row of megabytes, for a request of 200 bytes.
 */
export class ListingAllowance {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #buckets = new Map<number, Bucket>();
  readonly #running = new Map<number, number>();
  readonly #waiting = new Map<number, Set<WaitingListing>>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Counts a listing that a caller asks for. @throws Problem 429 `rate_limited` */
  take(workspaceId: number): void {
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(workspaceId) ?? fullBucket(LISTING_RULE, now);
    const taken = take(bucket, LISTING_RULE, now);
    this.#buckets.set(workspaceId, taken.bucket);
    if (taken.allowed) return;
    const detail = `A workspace may create and refresh ${LISTING_RULE.capacity} connectors at once, and ${60 * LISTING_RULE.perSecond} a minute after that. Try again later.`;
    throw new Problem("rate_limited", detail, { headers: { "Retry-After": String(taken.retrySeconds) } });
  }

  /** Does `list` when the workspace's turn has come. @throws ConnectorError if the signal aborts before */
  async inTurn<Result>(
    workspaceId: number,
    signal: AbortSignal,
    list: () => Promise<Result>,
  ): Promise<Result> {
    await this.#turn(workspaceId, signal);
    try {
      return await list();
    } finally {
      this.#next(workspaceId);
    }
  }

  #turn(workspaceId: number, signal: AbortSignal): Promise<void> | undefined {
    const running = this.#running.get(workspaceId) ?? 0;
    if (running < LISTINGS_AT_ONCE) {
      this.#running.set(workspaceId, running + 1);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(workspaceId) ?? new Set();
      this.#waiting.set(workspaceId, waiting);
      const giveUp = () => {
        waiting.delete(listing);
        reject(
          new ConnectorError(
            "timeout",
            "The workspace's other connectors took too long to list their tools.",
          ),
        );
      };
      const listing = {
        begin() {
          signal.removeEventListener("abort", giveUp);
          resolve();
        },
      };
      waiting.add(listing);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** Hands the turn on to the next listing that waits. */
  #next(workspaceId: number): void {
    const waiting = this.#waiting.get(workspaceId);
    for (const listing of waiting ?? []) {
      waiting?.delete(listing);
      listing.begin();
      return;
    }
    this.#running.set(workspaceId, (this.#running.get(workspaceId) ?? 1) - 1);
  }
}

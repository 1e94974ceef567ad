import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { type Bucket, type BucketRule, fullBucket, take } from "../../limits/bucket.ts";
import { ConnectorError } from "../source.ts";

/** A workspace may set up all of its connectors at once, and then refresh one every two seconds. */
export const LISTING_RULE: BucketRule = { capacity: 240, perSecond: 0.5 };
/**
 * Maximum number of concurrent listings of one workspace: each holds part of its upstream's answer in memory, parsed.
 */
export const LISTINGS_AT_ONCE = 8;

interface WaitingListing {
  begin(): void;
}

/**
 * Limits how often and how many at once a workspace may list connectors' tools. Each listing costs a download,
 * parsing and a row of megabytes, for a request of 200 bytes.
 */
export class ListingAllowance {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #buckets = new Map<number, Bucket>();
  readonly #running = new Map<number, number>();
  readonly #waiting = new Map<number, Set<WaitingListing>>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Counts a listing that a caller requests. @throws Problem 429 `rate_limited` */
  take(workspaceId: number): void {
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(workspaceId) ?? fullBucket(LISTING_RULE, now);
    const taken = take(bucket, LISTING_RULE, now);
    this.#buckets.set(workspaceId, taken.bucket);
    if (taken.allowed) return;
    const detail = `A workspace may create and refresh ${LISTING_RULE.capacity} connectors at once, then ${60 * LISTING_RULE.perSecond} per minute. Try again later.`;
    throw new Problem("rate_limited", detail, { headers: { "Retry-After": String(taken.retrySeconds) } });
  }

  /** Runs `list` when it is the workspace's turn. @throws ConnectorError if the signal aborts first */
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

  /** Starts the next waiting listing. */
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

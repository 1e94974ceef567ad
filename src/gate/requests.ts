import type { Workspace } from "../access/workspaces.ts";
import { type Bucket, type BucketRule, fullBucket, left, take } from "../limits/bucket.ts";

/** The limiter's result for a counted request, which becomes response headers. */
export interface RequestLimit {
  readonly quota: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly retrySeconds: number;
  readonly exceeded: boolean;
}

/** One token bucket per workspace: its capacity is the requests per minute, refilled evenly. */
export interface RequestLimiter {
  /**
   * Counts a request. A Promise only if other nodes have to be asked before the request may be refused.
   * @param now the monotonic time
   * @param mayWait false if the request is not refused anyway
   */
  take(workspace: Workspace, now: number, mayWait: boolean): RequestLimit | Promise<RequestLimit>;
  /** Requests that the workspace can still make right now, as far as this node knows. */
  left(workspace: Workspace, now: number): number;
}

/** The buckets of the only process that uses the store. */
export class LocalRequestLimiter implements RequestLimiter {
  readonly #buckets = new Map<number, Bucket>();

  take(workspace: Workspace, now: number): RequestLimit {
    const rule = ruleOf(workspace);
    const taken = take(this.#buckets.get(workspace.id) ?? fullBucket(rule, now), rule, now);
    this.#buckets.set(workspace.id, taken.bucket);
    return {
      quota: workspace.limits.requestsPerMinute,
      remaining: taken.remaining,
      resetSeconds: taken.resetSeconds,
      retrySeconds: Math.max(1, taken.retrySeconds),
      exceeded: !taken.allowed,
    };
  }

  left(workspace: Workspace, now: number): number {
    const rule = ruleOf(workspace);
    return left(this.#buckets.get(workspace.id) ?? fullBucket(rule, now), rule, now);
  }
}

export function ruleOf({ limits }: Workspace): BucketRule {
  return { capacity: limits.requestsPerMinute, perSecond: limits.requestsPerMinute / 60 };
}

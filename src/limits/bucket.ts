/** A token bucket as plain data: `available` tokens as of `at` (milliseconds). */
export interface Bucket {
  readonly available: number;
  readonly at: number;
}

export interface BucketRule {
  /** Tokens in a full bucket. */
  readonly capacity: number;
  readonly perSecond: number;
}

export interface BucketResult {
  readonly bucket: Bucket;
  readonly allowed: boolean;
  /** Whole tokens left. */
  readonly remaining: number;
  /** Seconds until the bucket is full, rounded up. */
  readonly resetSeconds: number;
  /** Seconds until the next token, rounded up; 0 if one is available. */
  readonly retrySeconds: number;
}

/** When a bucket is full again, and has its next token. */
export function timesOf(
  available: number,
  rule: BucketRule,
): Pick<BucketResult, "resetSeconds" | "retrySeconds"> {
  return {
    resetSeconds: Math.ceil((rule.capacity - available) / rule.perSecond),
    retrySeconds: available >= 1 ? 0 : Math.ceil((1 - available) / rule.perSecond),
  };
}

export function fullBucket(rule: BucketRule, now: number): Bucket {
  return { available: rule.capacity, at: now };
}

/** Refills for the elapsed time (not if the clock went back) and takes one token if available. */
export function take(bucket: Bucket, rule: BucketRule, now: number): BucketResult {
  const filled = filledUp(bucket, rule, now);
  const allowed = filled >= 1;
  const available = allowed ? filled - 1 : filled;
  return {
    bucket: { available, at: now },
    allowed,
    remaining: Math.floor(available),
    resetSeconds: Math.ceil((rule.capacity - available) / rule.perSecond),
    retrySeconds: available >= 1 ? 0 : Math.ceil((1 - available) / rule.perSecond),
  };
}

/** Whole tokens available; takes none. */
export function left(bucket: Bucket, rule: BucketRule, now: number): number {
  return Math.floor(filledUp(bucket, rule, now));
}

/** The tokens of a bucket now. */
export function filledUp(bucket: Bucket, rule: BucketRule, now: number): number {
  const elapsed = Math.max(0, now - bucket.at);
  return Math.min(rule.capacity, bucket.available + (elapsed / 1000) * rule.perSecond);
}

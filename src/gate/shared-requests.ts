import type { Workspace } from "../access/workspaces.ts";
import { type Clock, within } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Bucket, type BucketRule, filledUp, take, timesOf } from "../limits/bucket.ts";
import { exchangeTokens } from "../limits/shared-buckets.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { type Db, StoreUnavailable } from "../store/db.ts";
import { type RequestLimit, type RequestLimiter, ruleOf } from "./requests.ts";

/**
 * How long a lease counts after its node has last asked. A node that was frozen for longer has lost it, because the
 * bucket was refilled.
 */
const LEASE_MS = 5_000;
/** A workspace is forgotten if it makes no request during this time. */
const FORGET_MS = 600_000;
/** A bucket that was empty is asked again only after this time, so a flood of refused calls does not flood the database. */
const EMPTY_MS = 50;
/** The longest that a call waits for the database to be asked. Then the node decides by its own share. */
const MOST_WAIT_MS = 1_000;
/** How often a call asks if others take what it was granted. */
const MOST_ASKED = 5;
/** The part of a limit that a node may use without a lease while at least half of it is left, so such calls need not wait. */
const OWED_PART = 1 / 100;

/** What this node knows of a workspace's bucket, and has leased from it. Times are monotonic. */
interface Share {
  /** Tokens that are left to this node. Negative: tokens that it has used and not yet taken from the bucket. */
  leased: number;
  /** What is left over all nodes, as far as this node knows. */
  left: Bucket;
  /** When it last asked. */
  askedAt: number;
  nodes: number;
  /** The limit under which it last asked. */
  capacity: number;
  /** Requests since it last asked. */
  used: number;
  usedAt: number;
  /** Calls that wait for tokens. */
  waiting: number;
  /** Counts how often it has asked. */
  asked: number;
  asking: Promise<void> | null;
  /** The own share, while the store is away. */
  own: Bucket | null;
}

export interface SharedRequestLimiterParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Pick<Log, "error">;
  readonly nodes: Pick<Nodes, "beat">;
  /** The workspace as this node knows it now. */
  workspace(id: number): Workspace;
}

/**
 * Counts the requests of all nodes in one bucket. A node leases tokens ahead of need, so most requests wait for
 * nothing. If it has none left, it asks before it refuses a request. It gives back what it has not used within two seconds.
 *
 * An enforced limit lets through no more than one bucket would, apart from `OWED_PART` for each node of a limit of at least
 * 100. While requests are not refused, they take tokens without a lease, which are then taken from the bucket.
 */
export class SharedRequestLimiter implements RequestLimiter {
  readonly #parts: SharedRequestLimiterParts;
  readonly #shares = new Map<number, Share>();

  constructor(parts: SharedRequestLimiterParts) {
    this.#parts = parts;
    parts.nodes.beat.listen(() => this.#review());
  }

  take(workspace: Workspace, now: number, mayWait: boolean): RequestLimit | Promise<RequestLimit> {
    const share = this.#shareOf(workspace);
    const rule = ruleOf(workspace);
    if (share.leased > 0 && !isLeaseValid(share, now)) share.leased = 0;
    forgetOtherLimit(share, rule);
    if (share.leased >= 1) {
      use(share, rule, now);
      // Before the lease is used up, so the next requests need not wait.
      if (share.leased < share.used) this.#askSoon(workspace, share);
      return limitOf(share, rule, now, false);
    }
    const left = leftOf(share, rule, now);
    if (!mayWait || workspace.limits.enforcement !== "enforced") {
      this.#askSoon(workspace, share);
      if (left < 1) return limitOf(share, rule, now, true);
      use(share, rule, now);
      return limitOf(share, rule, now, false);
    }
    const mayOwe = share.leased > -Math.floor(rule.capacity * OWED_PART) && left > rule.capacity / 2;
    if (!mayOwe) return this.#takeAsked(workspace, share);
    use(share, rule, now);
    this.#askSoon(workspace, share);
    return limitOf(share, rule, now, false);
  }

  left(workspace: Workspace, now: number): number {
    return Math.max(0, Math.floor(leftOf(this.#shareOf(workspace), ruleOf(workspace), now)));
  }

  /** Takes a token that the bucket is asked for. */
  async #takeAsked(workspace: Workspace, share: Share): Promise<RequestLimit> {
    const { clock } = this.#parts;
    const rule = ruleOf(workspace);
    const begun = share.asked;
    share.waiting += 1;
    try {
      for (let asked = 0; ; ) {
        const now = clock.monotonic();
        forgetOtherLimit(share, rule);
        if (share.leased >= 1) {
          use(share, rule, now);
          return limitOf(share, rule, now, false);
        }
        if (share.own) return takeOwn(share, rule, now);
        // An answer to a question that began before this call counts too, if it is that new.
        const isKnown = !share.asking && (share.asked > begun || isNew(share, now));
        if (isKnown && (leftOf(share, rule, now) < 1 || asked >= MOST_ASKED)) {
          return limitOf(share, rule, now, true);
        }
        const asking = share.asking ?? this.#ask(workspace, share);
        asked += 1;
        await within(clock, MOST_WAIT_MS, [asking]);
        if (share.asking === asking) return takeOwn(share, rule, clock.monotonic());
      }
    } finally {
      share.waiting -= 1;
    }
  }

  /** Asks the bucket, unless that is under way or it was just found empty. Nobody waits for it. */
  #askSoon(workspace: Workspace, share: Share): void {
    if (share.asking) return;
    const now = this.#parts.clock.monotonic();
    if (leftOf(share, ruleOf(workspace), now) < 1 && isNew(share, now)) return;
    void this.#ask(workspace, share);
  }

  /** Never rejects. @param mostKept tokens of the lease that are not given back */
  #ask(workspace: Workspace, share: Share, mostKept = Number.POSITIVE_INFINITY): Promise<void> {
    const asking = this.#exchange(workspace, share, mostKept).finally(() => {
      if (share.asking === asking) share.asking = null;
    });
    share.asked += 1;
    share.asking = asking;
    return asking;
  }

  async #exchange(workspace: Workspace, share: Share, mostKept: number): Promise<void> {
    const { db, clock, log } = this.#parts;
    const rule = ruleOf(workspace);
    forgetOtherLimit(share, rule);
    const owed = Math.max(0, -share.leased);
    const surplus = Math.max(0, share.leased - mostKept);
    share.leased -= surplus;
    const kept = Math.max(0, share.leased);
    const { used } = share;
    share.used = 0;
    share.capacity = rule.capacity;
    // The bucket is filled up to this time, and not to that of the answer.
    const at = clock.monotonic();
    try {
      const { granted, tokens, nodes } = await exchangeTokens(db, {
        workspaceId: workspace.id,
        rule,
        now: clock.now(),
        returned: surplus - owed,
        agoMs: owed > 0 ? Math.round(at - share.usedAt) : 0,
        needed: share.waiting,
        ahead: surplus > 0 ? 0 : Math.max(0, 2 * used - share.leased - owed),
      });
      if (share.leased > 0 && !isLeaseValid(share, clock.monotonic())) share.leased = 0;
      share.leased += granted + owed;
      share.askedAt = at;
      // What was used while it asked is used of what was left then, and since refilled.
      const then = filledUp({ available: tokens + granted + kept, at }, rule, Math.max(at, share.usedAt));
      share.left = { available: then - share.used, at: Math.max(at, share.usedAt) };
      share.nodes = Math.max(1, nodes);
      share.own = null;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) {
        log.error("the requests of other nodes cannot be counted", { workspace: workspace.name, error });
      }
      const now = clock.monotonic();
      const left = Math.max(0, leftOf(share, rule, now));
      share.own ??= { available: left / share.nodes, at: now };
    }
  }

  /** Takes from the bucket what was used without a lease, gives back what was not used, and forgets idle workspaces. */
  #review(): void {
    const now = this.#parts.clock.monotonic();
    for (const [id, share] of this.#shares) {
      if (share.asking) continue;
      const mostKept = 2 * share.used;
      const isUsed = share.used > 0 || share.leased < 0;
      if (isUsed || share.leased > mostKept) {
        void this.#ask(this.#parts.workspace(id), share, mostKept);
      } else if (now - share.usedAt > FORGET_MS) this.#shares.delete(id);
    }
  }

  #shareOf({ id, limits }: Workspace): Share {
    const known = this.#shares.get(id);
    if (known) return known;
    const now = this.#parts.clock.monotonic();
    const share: Share = {
      leased: 0,
      left: { available: limits.requestsPerMinute, at: now },
      askedAt: Number.NEGATIVE_INFINITY,
      nodes: 1,
      capacity: limits.requestsPerMinute,
      used: 0,
      usedAt: now,
      waiting: 0,
      asked: 0,
      asking: null,
      own: null,
    };
    this.#shares.set(id, share);
    return share;
  }
}

function isLeaseValid({ askedAt }: Share, now: number): boolean {
  return now - askedAt <= LEASE_MS;
}

/**
 * What was leased or is owed under another limit does not count under this one. It is not given back either: a bucket that
 * was emptied since would be filled again, once by each node.
 */
function forgetOtherLimit(share: Share, rule: BucketRule): void {
  if (share.capacity !== rule.capacity) share.leased = 0;
}

/** Whether the bucket was asked a moment ago. */
function isNew({ askedAt }: Share, now: number): boolean {
  return now - askedAt < EMPTY_MS;
}

function use(share: Share, rule: BucketRule, now: number): void {
  share.left = { available: filledUp(share.left, rule, now) - 1, at: Math.max(share.left.at, now) };
  share.usedAt = now;
  share.leased -= 1;
  share.used += 1;
}

/** Tokens left over all nodes, as far as this node knows. */
function leftOf({ left }: Share, rule: BucketRule, now: number): number {
  return filledUp(left, rule, now);
}

function limitOf(share: Share, rule: BucketRule, now: number, exceeded: boolean): RequestLimit {
  return requestLimit(Math.max(0, leftOf(share, rule, now)), rule, exceeded);
}

/** While the bucket cannot be asked, each node has an equal share of the limit. */
function takeOwn(share: Share, rule: BucketRule, now: number): RequestLimit {
  const part = { capacity: rule.capacity / share.nodes, perSecond: rule.perSecond / share.nodes };
  const own = share.own ?? { available: Math.max(0, leftOf(share, rule, now)) / share.nodes, at: now };
  const taken = take(own, part, now);
  share.own = taken.bucket;
  return requestLimit(taken.bucket.available, rule, !taken.allowed);
}

function requestLimit(available: number, rule: BucketRule, exceeded: boolean): RequestLimit {
  const { resetSeconds, retrySeconds } = timesOf(available, rule);
  const remaining = Math.floor(available);
  return { quota: rule.capacity, remaining, resetSeconds, retrySeconds: Math.max(1, retrySeconds), exceeded };
}

import { type Clock, timestamp } from "../base/clock.ts";
import type { Ids, RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { type Db, StoreUnavailable, type Tx } from "../store/db.ts";
import {
  type DeliveryRef,
  dueDeliveries,
  findDue,
  insertDelivery,
  nextDue,
  noteAttempt,
  replacePending,
} from "./deliveries.ts";
import { DeliveryLines } from "./lines.ts";
import type { NoticeType } from "./notice-types.ts";
import { type PostResult, post, type Receiver } from "./post.ts";

/** An event for the operator's webhook. */
export interface WebhookNotice {
  readonly workspaceId: number;
  readonly type: NoticeType;
  readonly data: object;
  /** Whether it replaces pending notices of its type, because only the newest matters. */
  readonly replaces?: boolean;
}

export interface WebhookParts extends Receiver {
  readonly db: Db;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: RandomSource;
  readonly log: Log;
  readonly nodes: Pick<Nodes, "leases" | "bus">;
}

/** The lease of the node that posts. */
const LEASE = "webhook";
/** The topic of messages to that node: something is due that another one has stored. */
const DUE = "webhook.due";

/**
 * Maximum number of concurrent posts, in all and for one workspace, so that others need not wait for a hanging
 * receiver.
 */
const AT_ONCE = 16;
const AT_ONCE_PER_WORKSPACE = 8;
/** Maximum number of deliveries of one workspace read at a time. */
const LOOK_LIMIT = 100;
/** Pauses between retries: over 17 hours in all, after the example of Standard Webhooks. */
export const RETRY_MS: readonly number[] = [
  5_000, 30_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000,
];
/**
 * Random extension of a pause, up to this part of it, so that simultaneous failures are not retried at the same time.
 */
const JITTER = 0.2;
/** The longest pause that a receiver may request. */
export const RETRY_AFTER_LIMIT_MS = 36_000_000;
/** The longest time between two checks, so that a changed clock is noticed. */
const LOOK_MS = 60_000;
/** Pause after the store could not be read or written. */
const STORE_RETRY_MS = 5_000;
/** How long a shutdown waits for the last notices. */
const CLOSE_MS = 2_000;

/**
 * Posts notices to the configured URL as `{"type","timestamp","data"}`, signed according to Standard Webhooks. They
 * are stored until accepted: delivered at least once, with a constant `webhook-id`, in no particular order.
 * Workspaces take turns.
 *
 * Any node stores notices, and one node at a time posts them. If that node dies during a post, the next one posts that
 * notice again.
 */
export class Webhook {
  readonly #parts: WebhookParts;
  readonly #origin: string;
  readonly #closing = new AbortController();
  readonly #writing = new Set<Promise<void>>();
  readonly #lines = new DeliveryLines();
  /** Posts in progress, by delivery id. */
  readonly #out = new Map<string, DeliveryRef & { readonly done: Promise<void> }>();
  #looking: Promise<void> | null = null;
  /** Whether a notice was added during a check. */
  #isStale = false;
  /**
   * Whether the store could not be read or written. Until it can, nothing is posted that could not be marked as
   * posted.
   */
  #isPaused = false;
  #isEnding = false;
  #isFull = false;
  #cancelLook = () => {};
  /** Whether this node posts. */
  #isPoster = false;
  /** Whether what earlier processes have left is posted as well. */
  #isAwake = false;
  readonly #endPosting: () => void;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    this.#origin = new URL(parts.url).origin;
    const { leases, bus } = parts.nodes;
    const ignoreDue = bus.listen(DUE, () => this.#lookIfAwake());
    const ignoreMissed = bus.missed.listen(() => this.#lookIfAwake());
    const giveUp = leases.hold(LEASE, () => {
      this.#isPoster = true;
      this.#lookIfAwake();
      return () => {
        this.#isPoster = false;
        this.#lines.clear();
        this.#cancelLook();
      };
    });
    this.#endPosting = () => {
      ignoreDue();
      ignoreMissed();
      giveUp();
    };
  }

  /** Stores a notice in the transaction of its event, and sends it once that is on disk. */
  async write(tx: Tx, { workspaceId, type, data, replaces = false }: WebhookNotice): Promise<void> {
    const { clock, ids, log } = this.#parts;
    const now = clock.now();
    if (replaces) await replacePending(tx, workspaceId, type);
    const body = JSON.stringify({ type, timestamp: timestamp(now), data });
    const id = ids("msg");
    const isStored = await insertDelivery(tx, { workspaceId, id, type, body }, now);
    tx.onCommit(() => {
      if (isStored && this.#isPoster) this.#take([{ workspaceId, id }]);
      else if (isStored) this.#parts.nodes.bus.send(DUE, {});
      else if (!this.#isFull) {
        log.error("too many notices wait for the webhook: some are dropped", { webhook: this.#origin });
      }
      this.#isFull = !isStored;
    });
  }

  /** Stores and sends a notice of a past event. Never throws: failures are logged. */
  post(notice: WebhookNotice): void {
    const writing = this.#parts.db
      .tx(null, (tx) => this.write(tx, notice))
      .catch((error: unknown) => {
        const facts = { webhook: this.#origin, type: notice.type, error };
        this.#parts.log.error("a notice for the webhook could not be stored and is lost", facts);
      });
    this.#writing.add(writing);
    void writing.then(() => this.#writing.delete(writing));
  }

  /** Has everything that is due sent. Called at startup and when something becomes due. */
  wake(): void {
    this.#isAwake = true;
    if (this.#isPoster) this.#look();
    else this.#parts.nodes.bus.send(DUE, {});
  }

  #lookIfAwake(): void {
    if (this.#isAwake) this.#look();
  }

  #look(): void {
    if (!this.#isPoster || this.#closing.signal.aborted) return;
    this.#isPaused = false;
    this.#isStale = true;
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = null;
      if (this.#isStale) this.#look();
    });
  }

  /** Resolves when everything due now is sent, or after two seconds. The next start sends the rest. */
  async close(): Promise<void> {
    const cancel = this.#parts.clock.after(CLOSE_MS, () => this.#closing.abort());
    await Promise.all(this.#writing);
    this.#isEnding = true;
    while (this.#looking || this.#out.size > 0) {
      await Promise.all([this.#looking, ...[...this.#out.values()].map(({ done }) => done)]);
    }
    cancel();
    this.#closing.abort();
    this.#cancelLook();
    // Not before, or another node would post what this one is still posting.
    this.#endPosting();
  }

  async #lookNow(): Promise<void> {
    const { db, clock } = this.#parts;
    this.#cancelLook();
    try {
      let now: number;
      do {
        this.#isStale = false;
        now = clock.now();
        this.#take(await dueDeliveries(db, now, LOOK_LIMIT));
      } while (this.#isStale);
      // After the time checked up to: something may have become due between two checks.
      const next = await nextDue(db, now);
      if (next !== null) this.#lookAfter(Math.min(Math.max(next - clock.now(), 0), LOOK_MS));
    } catch (error) {
      this.#pause(error);
    }
  }

  #take(due: readonly DeliveryRef[]): void {
    for (const each of due) if (!this.#out.has(each.id)) this.#lines.add(each);
    this.#send();
  }

  /** Starts as many posts as allowed. */
  #send(): void {
    const isFree = (workspaceId: number) => this.#outOf(workspaceId) < AT_ONCE_PER_WORKSPACE;
    while (!this.#isPaused && !this.#closing.signal.aborted && this.#out.size < AT_ONCE) {
      const next = this.#lines.take(isFree);
      if (!next) return;
      const done = this.#deliver(next)
        .catch((error: unknown) => this.#pause(error))
        .finally(() => {
          this.#out.delete(next.id);
          this.#send();
          // The checked deliveries are being sent. There may be more, and this one may need a retry.
          if (this.#lines.isEmpty && !this.#isPaused) this.#look();
        });
      this.#out.set(next.id, { ...next, done });
    }
  }

  #outOf(workspaceId: number): number {
    let count = 0;
    for (const each of this.#out.values()) if (each.workspaceId === workspaceId) count++;
    return count;
  }

  #pause(error: unknown): void {
    this.#isPaused = true;
    this.#isStale = false;
    this.#lines.clear();
    this.#parts.log.warn("notices for the webhook will be sent later", { webhook: this.#origin, error });
    this.#lookAfter(STORE_RETRY_MS);
  }

  #lookAfter(ms: number): void {
    if (this.#isEnding || !this.#isPoster) return;
    this.#cancelLook();
    this.#cancelLook = this.#parts.clock.after(ms, () => this.#look());
  }

  async #deliver(ref: DeliveryRef): Promise<void> {
    const { db, clock, log, nodes } = this.#parts;
    // Read in a transaction, which the store refuses after a foreign write: a changed delivery MUST NOT be signed.
    const delivery = await db.tx(null, async (tx) => {
      if (!(await nodes.leases.isHeld(tx, LEASE))) throw new StoreUnavailable("another node posts");
      return findDue(tx, ref, clock.now());
    });
    if (!delivery) return;
    const posted = await post(this.#parts, delivery, clock, this.#closing.signal);
    const { httpStatus, problem } = posted;
    // Aborted by the shutdown, which says nothing about the receiver.
    if (problem !== null && this.#closing.signal.aborted) return;
    const at = clock.now();
    const wait = problem === null ? null : this.#waitAfter(posted, delivery.tries);
    const nextAt = wait === null ? null : at + wait;
    await db.tx(null, async (tx) => noteAttempt(tx, delivery, { at, httpStatus, problem, nextAt }));
    if (problem === null || nextAt !== null) return;
    const { id, type } = delivery;
    log.error("a notice could not be delivered", { webhook: this.#origin, id, type, problem });
  }

  /** Milliseconds until the next attempt, no sooner than the receiver requests. Null means to give up. */
  #waitAfter({ isGone, retryAfterMs }: PostResult, tries: number): number | null {
    const pause = RETRY_MS[tries];
    if (isGone || pause === undefined) return null;
    const wait = Math.max(pause, Math.min(retryAfterMs ?? 0, RETRY_AFTER_LIMIT_MS));
    const drawn = new Uint8Array(2);
    this.#parts.random(drawn);
    const chance = new DataView(drawn.buffer).getUint16(0) / 65_536;
    return wait + Math.floor(pause * JITTER * chance);
  }
}

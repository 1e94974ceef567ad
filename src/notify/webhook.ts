import { type Clock, timestamp } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Db, Tx } from "../store/db.ts";
import {
  type DueDelivery,
  dueDeliveries,
  insertDelivery,
  nextDue,
  noteAttempt,
  replacePending,
} from "./deliveries.ts";
import { post, type Receiver } from "./post.ts";

/** Something that happened, for a program of the operator's. */
export interface Notice {
  readonly workspaceId: number;
  readonly type: "task.finished" | "approval.required" | "limit.exceeded" | "ledger.checkpoint";
  readonly data: object;
  /** Those of its type that still wait are not sent any more: only the newest says anything. */
  readonly replaces?: boolean;
}

export interface WebhookParts extends Receiver {
  readonly db: Db;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Posts that are out at once. */
const AT_ONCE = 8;
/** Pauses before it is tried again: over 17 hours, after Standard Webhooks' example. */
export const RETRY_MS: readonly number[] = [
  5_000, 30_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000,
];
/** The longest that nobody looks what is due, so that a clock that was set is noticed. */
const LOOK_MS = 60_000;
/** After the store could not be read or written. */
const STORE_RETRY_MS = 5_000;
/** How long the last notices are waited for when the process ends. */
const CLOSE_MS = 2_000;

/**
 * Posts notices to the configured URL as `{"type","timestamp","data"}`, signed as Standard Webhooks says. They are in the
 * store until they are taken: at least once, `webhook-id` being the same where one is sent again; in no certain order.
 */
export class Webhook {
  readonly #parts: WebhookParts;
  readonly #origin: string;
  readonly #closing = new AbortController();
  readonly #writing = new Set<Promise<void>>();
  #sending: Promise<void> | null = null;
  /** Something came while it was being looked what is due. */
  #isStale = false;
  #isEnding = false;
  #isFull = false;
  #cancelLook = () => {};

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    this.#origin = new URL(parts.url).origin;
  }

  /** Stores a notice in the transaction of what it tells of, and sends it once that is on disk. */
  async write(tx: Tx, { workspaceId, type, data, replaces = false }: Notice): Promise<void> {
    const { clock, ids, log } = this.#parts;
    const now = clock.now();
    if (replaces) await replacePending(tx, workspaceId, type);
    const body = JSON.stringify({ type, timestamp: timestamp(now), data });
    const isStored = await insertDelivery(tx, { workspaceId, id: ids("msg"), type, body }, now);
    tx.onCommit(() => {
      if (isStored) this.wake();
      else if (!this.#isFull) {
        log.error("too many notices wait for the webhook: some are dropped", { webhook: this.#origin });
      }
      this.#isFull = !isStored;
    });
  }

  /** Stores and sends a notice of what has happened already. Never throws: what cannot be stored is told to the log. */
  post(notice: Notice): void {
    const writing = this.#parts.db
      .tx((tx) => this.write(tx, notice))
      .catch((error: unknown) => {
        const facts = { webhook: this.#origin, type: notice.type, error };
        this.#parts.log.error("a notice for the webhook cannot be stored, and is lost", facts);
      });
    this.#writing.add(writing);
    void writing.then(() => this.#writing.delete(writing));
  }

  /** Sends what is due: at the start, and whenever something was made due. */
  wake(): void {
    if (this.#closing.signal.aborted) return;
    this.#isStale = true;
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
      if (this.#isStale) this.wake();
    });
  }

  /** Resolves when what is due now is sent, or after two seconds; the next start sends the rest. */
  async close(): Promise<void> {
    const cancel = this.#parts.clock.after(CLOSE_MS, () => this.#closing.abort());
    await Promise.all(this.#writing);
    this.#isEnding = true;
    while (this.#sending) await this.#sending;
    cancel();
    this.#closing.abort();
    this.#cancelLook();
  }

  async #send(): Promise<void> {
    const { db, clock, log } = this.#parts;
    this.#cancelLook();
    try {
      let next: number | null = null;
      do {
        this.#isStale = false;
        const due = await dueDeliveries(db, clock.now(), AT_ONCE);
        const sent = await Promise.allSettled(due.map((delivery) => this.#deliver(delivery)));
        for (const each of sent) if (each.status === "rejected") throw each.reason;
        if (due.length > 0) this.#isStale = true;
        else next = await nextDue(db);
      } while (this.#isStale && !this.#closing.signal.aborted);
      if (next !== null) this.#lookAfter(Math.min(Math.max(next - clock.now(), 0), LOOK_MS));
    } catch (error) {
      this.#isStale = false;
      log.warn("notices for the webhook will be sent later", { webhook: this.#origin, error });
      this.#lookAfter(STORE_RETRY_MS);
    }
  }

  #lookAfter(ms: number): void {
    if (this.#isEnding) return;
    this.#cancelLook = this.#parts.clock.after(ms, () => this.wake());
  }

  async #deliver(delivery: DueDelivery): Promise<void> {
    const { db, clock, log } = this.#parts;
    const { httpStatus, problem, isGone } = await post(this.#parts, delivery, clock, this.#closing.signal);
    // It was broken off for the end of this process: that says nothing of the receiver.
    if (problem !== null && this.#closing.signal.aborted) return;
    const at = clock.now();
    const wait = isGone ? undefined : RETRY_MS[delivery.tries];
    const nextAt = problem === null || wait === undefined ? null : at + wait;
    await db.tx((tx) => noteAttempt(tx, delivery, { at, httpStatus, problem, nextAt }));
    if (problem === null || nextAt !== null) return;
    const { id, type } = delivery;
    log.error("a notice could not be delivered", { webhook: this.#origin, id, type, problem });
  }
}

import { type Clock, every } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { Signal } from "../../base/signal.ts";
import { VERSION } from "../../base/version.ts";
import { type Db, StoreUnavailable } from "../../store/db.ts";
import type { NodeInfo } from "../nodes.ts";
import { SharedClock } from "./shared-clock.ts";

const BEAT_MS = 2_000;
/** A node that has not reported for this time is given up for dead. */
const DEAD_AFTER_MS = 8_000;
/** A node gives up its leases before others may take them. */
const DOUBTFUL_AFTER_MS = 6_000;

/** The database's time, in milliseconds since the Unix epoch: nodes need no common clock. */
const TIME = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const JOIN = `INSERT INTO nodes (id, version, since, seen_at, tasks) VALUES ($1, $2, ${TIME}, ${TIME}, 0) RETURNING seen_at AS "now"`;
const SEEN = `UPDATE nodes SET seen_at = ${TIME}, tasks = $2 WHERE id = $1 RETURNING seen_at AS "now"`;
const GIVE_UP = `DELETE FROM nodes WHERE seen_at < ${TIME} - ${DEAD_AFTER_MS} AND id <> $1`;
const LIST = `SELECT id, version, since, seen_at AS "lastSeen", tasks FROM nodes ORDER BY since, id`;

export interface MembershipParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns an id that no node has had. */
  readonly newId: () => string;
}

/**
 * This node's row among those of the nodes, and the removal of others that are no longer seen. A row that is gone is
 * never written again: whatever belonged to its id is free.
 */
export class Membership {
  readonly lost = new Signal<string>();
  /** Emits after each report, with whether this node is in doubt whether the others still count it in. */
  readonly beat = new Signal<void>();
  readonly #parts: MembershipParts;
  #id: string;
  #count: () => number = () => 0;
  /** When it was last seen, by `Clock.monotonic`, from just before the report was sent. */
  #seenAt: number;
  /** When the current run of reports without a gap began. This node judges no other until the run is long enough. */
  #steadySince: number;
  #reporting: Promise<void> | null = null;
  #endBeat = () => {};

  private constructor(parts: MembershipParts, id: string, seenAt: number) {
    this.#parts = parts;
    this.#id = id;
    this.#seenAt = seenAt;
    this.#steadySince = seenAt;
  }

  /** @throws StoreUnavailable */
  static async join(parts: MembershipParts): Promise<Membership> {
    // Ids never go back: one that was made by a fast clock would date those of the next minutes.
    await takeTime(parts);
    const id = parts.newId();
    const before = parts.clock.monotonic();
    await enter(parts, id);
    const membership = new Membership(parts, id, before);
    membership.#endBeat = every(parts.clock, BEAT_MS, () => void membership.report());
    return membership;
  }

  get id(): string {
    return this.#id;
  }

  /** Whether others may have given this node up, or are about to. */
  get isDoubtful(): boolean {
    return this.#parts.clock.monotonic() - this.#seenAt > DOUBTFUL_AFTER_MS;
  }

  countTasks(count: () => number): void {
    this.#count = count;
  }

  list(): Promise<readonly NodeInfo[]> {
    return this.#parts.db.all<NodeInfo>(LIST);
  }

  /** Reports that this node is alive, and gives up those that are not. Never rejects. */
  async report(): Promise<void> {
    this.#reporting ??= this.#report()
      .catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
      })
      .finally(() => {
        this.#reporting = null;
        this.beat.emit();
      });
    await this.#reporting;
  }

  /** Leaves. While the store is away, the others notice by themselves. */
  async leave(): Promise<void> {
    this.#endBeat();
    await this.#reporting;
    try {
      await this.#parts.db.urgent.run("DELETE FROM nodes WHERE id = $1", [this.#id]);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  async #report(): Promise<void> {
    const { db, clock, log } = this.#parts;
    const before = clock.monotonic();
    // On a reserved connection: behind transactions that wait for locks, a healthy node would be given up.
    const row = await db.urgent.get<{ now: number }>(SEEN, [this.#id, this.#count()]);
    if (row) correct(clock, row.now, before);
    else await this.#joinAgain();
    if (before - this.#seenAt > DOUBTFUL_AFTER_MS || !row) this.#steadySince = before;
    this.#seenAt = before;
    // After the database was away, all nodes look dead until they have reported again.
    if (before - this.#steadySince < DEAD_AFTER_MS) return;
    const given = await db.urgent.run(GIVE_UP, [this.#id]);
    if (given > 0)
      log.warn("nodes that were not seen any more were given up; others take over their work", {
        nodes: given,
      });
  }

  async #joinAgain(): Promise<void> {
    const { newId, log } = this.#parts;
    const former = this.#id;
    this.#id = newId();
    log.warn("the other nodes have given this node up, which goes on with another id", {
      former,
      id: this.#id,
    });
    this.lost.emit(former);
    await enter(this.#parts, this.#id);
  }
}

async function enter({ db, clock }: MembershipParts, id: string): Promise<void> {
  const before = clock.monotonic();
  const row = await db.tx(null, (tx) => tx.get<{ now: number }>(JOIN, [id, VERSION]));
  if (row) correct(clock, row.now, before);
}

async function takeTime({ db, clock }: MembershipParts): Promise<void> {
  const before = clock.monotonic();
  const row = await db.urgent.get<{ now: number }>(`SELECT ${TIME} AS "now"`);
  if (row) correct(clock, row.now, before);
}

function correct(clock: Clock, time: number, before: number): void {
  if (clock instanceof SharedClock) clock.correct(time, before, clock.monotonic());
}

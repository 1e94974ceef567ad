import type { Clock } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import type { Nodes } from "../../../nodes/nodes.ts";
import { type Db, StoreUnavailable, type Tx } from "../../../store/db.ts";
import type { EventLog } from "../log.ts";
import type { EventsOwner, RelayedLogs } from "../relay.ts";
import { type EventTable, saveEvents } from "../store.ts";
import { type EarlyBlock, extendBlock, lastEvent, mayStoreEarly } from "./rows.ts";

/** The shortest time between two stores of one task's events. */
const APART_MS = 50;
/** A task that nobody asks for during this time is no longer followed. */
const FOLLOWED_MS = 10_000;
/** Pause after the store could not be written. */
const RETRY_MS = 1_000;
/**
 * An early block is extended up to this size. A row for every store would be 1,200 rows a minute, each of which later readers
 * and erasures visit.
 */
const EARLY_BLOCK_BYTES = 4 * 1024;

interface Followed extends EventsOwner {
  readonly log: EventLog;
  /** By `Clock.monotonic`. */
  until: number;
  /** The block that was stored last, while it can be extended. */
  block: EarlyBlock | null;
  /** The last id that readers were told of. */
  toldUpTo: number;
}

export interface EarlyStoringParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "id">;
  readonly clock: Clock;
  readonly log: Log;
  readonly table: EventTable;
  readonly logs: Pick<RelayedLogs, "find">;
  /** Tells the readers on other nodes. */
  told(owner: EventsOwner, upTo: number, mayBeOver: boolean): void;
}

/**
 * Stores the events of tasks that run here while readers on other nodes follow them, instead of only at the end of each
 * step. The transaction at the end of the step may store the same events at the same time. The two never wait
 * for each other in a circle, because this one locks nothing else. Blocks that begin with the same event become one, and readers
 * expect that others overlap.
 */
export class EarlyStoring {
  readonly #parts: EarlyStoringParts;
  readonly #followed = new Map<string, Followed>();
  #isEnded = false;

  constructor(parts: EarlyStoringParts) {
    this.#parts = parts;
  }

  /** Notes that readers on another node follow this. Does nothing if this node does not publish its events. */
  follow(owner: EventsOwner): void {
    const { clock, logs } = this.#parts;
    const log = logs.find(owner.id);
    if (!log || log.closed || this.#isEnded) return;
    const until = clock.monotonic() + FOLLOWED_MS;
    const known = this.#followed.get(owner.id);
    if (known?.log === log) {
      known.until = until;
      return;
    }
    const followed: Followed = { ...owner, log, until, block: null, toldUpTo: log.savedUpTo };
    this.#followed.set(owner.id, followed);
    void this.#keepStoring(followed);
  }

  end(): void {
    this.#isEnded = true;
  }

  /** Never rejects. */
  async #keepStoring(followed: Followed): Promise<void> {
    const { clock } = this.#parts;
    const { log, id } = followed;
    log.onSaved = () => this.#tell(followed);
    let pauseMs = 0;
    while (!this.#isEnded && !log.closed && clock.monotonic() < followed.until) {
      if (log.nextId - 1 > log.savedUpTo) {
        pauseMs = await this.#store(followed);
        await this.#wait(followed, pauseMs, false);
      } else {
        await this.#wait(followed, followed.until - clock.monotonic(), true);
      }
    }
    log.onSaved = null;
    if (this.#followed.get(id) === followed) this.#followed.delete(id);
    if (log.closed) this.#parts.told(followed, log.savedUpTo, true);
  }

  /** Waits until the time has passed or, if wanted, until there are new events. */
  async #wait({ log }: Followed, ms: number, endsEarly: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(ms, resolve);
    const forget = endsEarly ? log.onChange(resolve) : () => {};
    await promise;
    cancel();
    forget();
  }

  /** @returns how long to wait before the next store. Never rejects */
  async #store(followed: Followed): Promise<number> {
    const { db, log } = this.#parts;
    try {
      await db.tx(null, (tx) => this.#write(tx, followed), { turnOf: followed.workspaceId });
      return APART_MS;
    } catch (error) {
      // The end of the step will show whether the store can be written. Until then the events stay in memory.
      if (!(error instanceof StoreUnavailable))
        log.error("events cannot be stored for readers on other nodes", { id: followed.id, error });
      return RETRY_MS;
    }
  }

  async #write(tx: Tx, followed: Followed): Promise<void> {
    const { nodes, table } = this.#parts;
    const { log } = followed;
    log.flush();
    const from = log.savedUpTo;
    const frames = log.after(from);
    const lastId = from + frames.length;
    if (frames.length === 0) return;
    if (!(await mayStoreEarly(tx, table, followed, { nodeId: nodes.id, lastId }))) {
      followed.until = 0;
      return;
    }
    const { block } = followed;
    const next = blockWith(block?.lastId === from ? block : null, from + 1, frames);
    const isExtended =
      block !== null &&
      next?.firstId === block.firstId &&
      (await extendBlock(tx, table, followed, block, next));
    // The end of the step may already have stored them in a block that begins earlier.
    if (!isExtended && (await lastEvent(tx, table, followed)) < lastId)
      saveEvents(tx, followed.workspaceId, followed.id, from + 1, frames, table);
    tx.onCommit(() => {
      followed.block = next;
      log.saved(lastId);
    });
  }

  #tell(followed: Followed): void {
    const { savedUpTo } = followed.log;
    if (savedUpTo <= followed.toldUpTo) return;
    followed.toldUpTo = savedUpTo;
    this.#parts.told(followed, savedUpTo, false);
  }
}

/** The block that contains these frames, after those of `before` if they fit. Null if it is too long to be extended. */
function blockWith(
  before: EarlyBlock | null,
  firstId: number,
  frames: readonly Uint8Array[],
): EarlyBlock | null {
  const lastId = firstId + frames.length - 1;
  const bytes = frames.reduce((sum, frame) => sum + frame.length, 0);
  if (before && before.frames.length + bytes <= EARLY_BLOCK_BYTES) {
    return { firstId: before.firstId, lastId, frames: Buffer.concat([before.frames, ...frames]) };
  }
  return bytes <= EARLY_BLOCK_BYTES ? { firstId, lastId, frames: Buffer.concat(frames) } : null;
}

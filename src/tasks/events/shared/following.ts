import { type Clock, every } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import { type Db, StoreUnavailable } from "../../../store/db.ts";
import type { EventLog } from "../log.ts";
import type { EventsOwner, RelayedLogs, RemoteEvents } from "../relay.ts";
import type { EventTable } from "../store.ts";
import { storedStates } from "./rows.ts";

/** How often the store is checked for events whose message was lost. */
const POLL_MS = 1_000;
/** After this many polls, the node that publishes the events is told again that they are followed. */
const POLLS_PER_CALL = 4;

/** A task or response that readers of this node follow. */
interface FollowedElsewhere extends EventsOwner {
  readonly readers: Set<() => void>;
  /** The last id in the store, as far as known. */
  upTo: number;
  isOver: boolean;
}

export interface FollowingParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly table: EventTable;
  readonly logs: Pick<RelayedLogs, "find">;
  /** Asks the node that publishes these events to store them soon. */
  call(owners: readonly EventsOwner[]): void;
}

/** Readers of this node that read what other nodes publish, from the store. */
export class Following {
  readonly #parts: FollowingParts;
  readonly #all = new Map<string, FollowedElsewhere>();
  #endPolls: (() => void) | null = null;
  #polls = 0;
  #isEnded = false;

  constructor(parts: FollowingParts) {
    this.#parts = parts;
  }

  follow(owner: EventsOwner): RemoteEvents {
    let followed: FollowedElsewhere | null = null;
    let isClosed = false;
    let wake = () => {};
    const told = () => wake();
    return {
      next: async (after) => {
        if (isClosed) return null;
        followed ??= this.#join(owner, told);
        while (!isClosed && !this.#isEnded) {
          const log = this.#ownLog(owner.id);
          if (log) return log;
          if (followed.upTo > after) return followed.upTo;
          if (followed.isOver) return null;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        return null;
      },
      close: () => {
        isClosed = true;
        if (followed) this.#leave(followed, told);
        wake();
      },
    };
  }

  /** Another node has stored events of this up to `upTo`, and may have written its end. */
  stored({ id }: EventsOwner, upTo: number, mayBeOver: boolean): void {
    const followed = this.#all.get(id);
    if (!followed) return;
    followed.upTo = Math.max(followed.upTo, upTo);
    wakeAll(followed);
    if (mayBeOver) void this.#look([followed]);
  }

  /** A node has begun to publish the events of this: here or, with `isElsewhere`, on another node. */
  opened(id: string, isElsewhere: boolean): void {
    const followed = this.#all.get(id);
    if (!followed) return;
    if (isElsewhere) this.#parts.call([followed]);
    else wakeAll(followed);
  }

  /** Looks at the store, because messages may have been missed. */
  lookAtAll(): void {
    const open = this.#open();
    if (open.length === 0) return;
    this.#parts.call(open);
    void this.#look(open);
  }

  /** Ends all reads. */
  end(): void {
    this.#isEnded = true;
    for (const followed of this.#all.values()) wakeAll(followed);
  }

  #ownLog(id: string): EventLog | undefined {
    const log = this.#parts.logs.find(id);
    return log?.closed ? undefined : log;
  }

  #open(): FollowedElsewhere[] {
    return [...this.#all.values()].filter(({ isOver }) => !isOver);
  }

  #join(owner: EventsOwner, wake: () => void): FollowedElsewhere {
    const known = this.#all.get(owner.id);
    const followed = known ?? { ...owner, readers: new Set(), upTo: 0, isOver: false };
    followed.readers.add(wake);
    if (known) return known;
    this.#all.set(owner.id, followed);
    this.#endPolls ??= every(this.#parts.clock, POLL_MS, () => this.#poll());
    void this.#begin(followed);
    return followed;
  }

  #leave(followed: FollowedElsewhere, wake: () => void): void {
    followed.readers.delete(wake);
    if (followed.readers.size > 0 || this.#all.get(followed.id) !== followed) return;
    this.#all.delete(followed.id);
    if (this.#all.size > 0) return;
    this.#endPolls?.();
    this.#endPolls = null;
  }

  /** Nobody is asked to store the events of what has ended. Never rejects. */
  async #begin(followed: FollowedElsewhere): Promise<void> {
    await this.#look([followed]);
    if (!followed.isOver && this.#all.has(followed.id)) this.#parts.call([followed]);
  }

  #poll(): void {
    const open = this.#open();
    this.#polls += 1;
    if (this.#polls % POLLS_PER_CALL === 0 && open.length > 0) this.#parts.call(open);
    void this.#look(open);
  }

  /** Never rejects. What cannot be read now is read later. */
  async #look(followed: readonly FollowedElsewhere[]): Promise<void> {
    const { db, table, log } = this.#parts;
    for (const [workspaceId, some] of Map.groupBy(followed, (each) => each.workspaceId)) {
      try {
        const states = await storedStates(
          db,
          table,
          workspaceId,
          some.map(({ id }) => id),
        );
        const byId = new Map(states.map((state) => [state.id, state]));
        for (const each of some) {
          const state = byId.get(each.id);
          // What has no row was deleted.
          each.isOver ||= state === undefined || Boolean(state.isOver);
          each.upTo = Math.max(each.upTo, state?.upTo ?? 0);
          wakeAll(each);
        }
      } catch (error) {
        if (!(error instanceof StoreUnavailable))
          log.error("events of other nodes cannot be read", { workspace_id: workspaceId, error });
      }
    }
  }
}

function wakeAll({ readers }: FollowedElsewhere): void {
  for (const wake of [...readers]) wake();
}

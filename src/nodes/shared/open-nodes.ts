import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { Signal } from "../../base/signal.ts";
import { type Db, StoreUnavailable } from "../../store/db.ts";
import type { Nodes } from "../nodes.ts";
import { Membership } from "./membership.ts";
import { SharedBus } from "./shared-bus.ts";
import { SharedLeases } from "./shared-leases.ts";

export interface OpenNodesParts {
  readonly db: Db;
  /** A direct URL of the database, for messages. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: () => string;
}

/** After this time, a node starts even if it receives no messages. It refuses calls until it does. */
const LISTENING_MS = 3_000;

/** Joins the nodes that share a store. @throws StoreUnavailable */
export async function openNodes({ db, url, clock, log, newId }: OpenNodesParts): Promise<Nodes> {
  const membership = await Membership.join({ db, clock, log, newId });
  const bus = new SharedBus({ url, clock, log });
  // Until then, this node would refuse calls.
  await bus.listening(LISTENING_MS);
  const leases = new SharedLeases(db, membership, bus);
  bus.listen("node.left", () => membership.beat.emit());
  const gone = new Signal<void>();
  let present: ReadonlySet<string> = new Set();
  async function lookForGone(): Promise<void> {
    const known = present;
    present = new Set((await membership.list()).map(({ id }) => id));
    if ([...known].some((id) => id !== membership.id && !present.has(id))) gone.emit();
  }
  membership.beat.listen(() => {
    lookForGone().catch((error: unknown) => {
      // With the next beat.
      if (!(error instanceof StoreUnavailable)) log.error("the other nodes cannot be read", { error });
    });
  });
  return {
    isShared: true,
    get id() {
      return membership.id;
    },
    ...{ bus, leases, gone, beat: membership.beat, lost: membership.lost },
    list: () => membership.list(),
    countTasks: (count) => membership.countTasks(count),
    async close() {
      await leases.close();
      await membership.leave();
      bus.send("node.left", { id: membership.id }, { isUrgent: true });
      await bus.close();
    },
  };
}

import { type Clock, every } from "../base/clock.ts";
import { Signal } from "../base/signal.ts";
import { VERSION } from "../base/version.ts";
import type { Bus } from "./bus.ts";
import type { Leases } from "./leases.ts";
import type { Nodes } from "./nodes.ts";

const BEAT_MS = 2_000;

const BUS: Bus = {
  send() {},
  listen: () => () => {},
  missed: new Signal<void>(),
  deafForMs: 0,
};

/** What the only node of its store needs of `Nodes` to remember what it has read. */
export const ALONE: Pick<Nodes, "isShared" | "bus" | "gone"> = {
  isShared: false,
  bus: BUS,
  gone: new Signal<void>(),
};

/** The only node of its store. It holds every lease, and there is nobody to send a message to. */
export function localNodes(id: string, clock: Clock): Nodes {
  const since = clock.now();
  const beat = new Signal<void>();
  const held = new Set<string>();
  let count = () => 0;
  const leases: Leases = {
    hold(name, begin) {
      held.add(name);
      const end = begin();
      return () => {
        if (held.delete(name)) end();
      };
    },
    has: (name) => held.has(name),
    isHeld: async (_, name) => held.has(name),
  };
  const endBeat = every(clock, BEAT_MS, () => beat.emit());
  return {
    ...{ isShared: false, id, bus: BUS, leases, beat },
    lost: new Signal<string>(),
    gone: new Signal<void>(),
    list: async () => [{ id, version: VERSION, since, lastSeen: clock.now(), tasks: count() }],
    countTasks(counted) {
      count = counted;
    },
    async close() {
      endBeat();
    },
  };
}

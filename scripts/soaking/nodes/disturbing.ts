import type { NodeCluster } from "./cluster.ts";

/** What happens to the servers or to their database. */
export type FaultKind = "kill" | "stop" | "terminate" | "postgres" | "clocks";

export const FAULT_KINDS: readonly FaultKind[] = ["kill", "stop", "terminate", "postgres", "clocks"];

/** One fault that happened, in milliseconds since the Unix epoch. */
export interface Happened {
  readonly kind: FaultKind;
  readonly at: number;
}

export interface Disturbing {
  readonly cluster: NodeCluster;
  readonly kinds: readonly FaultKind[];
  readonly random: () => number;
  /** `performance.now()` after which nothing more happens. */
  readonly until: number;
  readonly happened: Happened[];
}

const EVERY_MS = 20_000;
const FROZEN_MS = 30_000;
const STORM_MS = 5_000;
const TERMINATE =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
/** Clocks are wrong from the start, so servers are killed as well, to be started with wrong clocks. */
const OF_KIND: Readonly<Record<FaultKind, (disturbing: Disturbing, turn: number) => Promise<void>>> = {
  kill: killOne,
  stop: freezeOne,
  terminate: terminateSessions,
  postgres: restartDatabase,
  clocks: killOne,
};

/** Lets one fault happen every 20 seconds. */
export async function disturb(disturbing: Disturbing): Promise<void> {
  const { kinds, until, happened } = disturbing;
  for (let turn = 0; ; turn++) {
    await pauseUntil(performance.now() + EVERY_MS / 2, until);
    if (performance.now() >= until) return;
    const kind = kinds[turn % kinds.length] ?? "kill";
    happened.push({ kind, at: Date.now() });
    await OF_KIND[kind](disturbing, turn);
    await pauseUntil(performance.now() + EVERY_MS / 2, until);
  }
}

async function pauseUntil(at: number, until: number): Promise<void> {
  await Bun.sleep(Math.max(0, Math.min(at, until) - performance.now()));
}

async function killOne({ cluster, random }: Disturbing, turn: number): Promise<void> {
  const node = cluster.nodes[turn % cluster.nodes.length];
  await node?.kill();
  // Others take over after about 8 seconds. Sometimes it comes back before that.
  await Bun.sleep(2_000 + random() * 14_000);
  await node?.start();
}

async function freezeOne({ cluster }: Disturbing, turn: number): Promise<void> {
  const node = cluster.nodes[turn % cluster.nodes.length];
  node?.freeze();
  await Bun.sleep(FROZEN_MS);
  node?.thaw();
}

async function terminateSessions({ cluster }: Disturbing): Promise<void> {
  cluster.disturb();
  const end = performance.now() + STORM_MS;
  while (performance.now() < end) {
    await cluster.database.query(TERMINATE);
    await Bun.sleep(100);
  }
  cluster.settle();
}

async function restartDatabase({ cluster, random }: Disturbing): Promise<void> {
  cluster.disturb();
  await cluster.server.kill();
  await Bun.sleep(1_000 + random() * 7_000);
  await cluster.server.start();
  cluster.settle();
}

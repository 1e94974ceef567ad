/** `scripts/soak --nodes N`: several servers with one store, and faults of one or of all kinds. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { seeded } from "../../../test/faults/support.ts";
import { budgetFaults, exhaustedFaults } from "../checks/budgets.ts";
import { callFaults } from "../checks/calls.ts";
import { creditFaults } from "../checks/credits.ts";
import { documentFaults, fileFaults, intentFaults } from "../checks/files.ts";
import { endedByStopFaults, stopFaults } from "../checks/stops.ts";
import { endFaults, eventFaults, scheduleFaults, taskFaults } from "../checks/tasks.ts";
import { readEvidenceFile, type TimedEntry } from "../evidence-file.ts";
import { Faults } from "../faults.ts";
import { finish, live, type Seen } from "../soak.ts";
import { startUpstreams } from "../upstreams.ts";
import { furnish, settings, type World } from "../world.ts";
import { NodeCluster } from "./cluster.ts";
import { disturb, FAULT_KINDS, type FaultKind, type Happened } from "./disturbing.ts";
import { NodesLife } from "./nodes-life.ts";
import { type Probes, probeStops } from "./probing.ts";
import { missingClocks, wrongClock } from "./wrong-clocks.ts";

/** How long all actors work in a round. After each round, the run checks whether to go on. */
const LIFE_MS = 5_000;
/** The contract: tasks of a dead server go on elsewhere within this time. */
const TAKEOVER_MS = 15_000;
/** A stop may take a second to reach the last server. */
const STOP_GRACE_MS = 1_000;

export interface NodesRun {
  readonly nodes: number;
  readonly fault: FaultKind | "all";
  readonly seconds: number;
  readonly seed: number;
  readonly binary: boolean;
  readonly tasksARound: number;
  /** Multiplies the times that something may take. More than 1 on a machine that is busy with other work. */
  readonly patience: number;
  /** Called with the cluster before its first server starts. */
  readonly prepared: (cluster: NodeCluster) => void;
  readonly progress: (line: string) => void;
}

export interface NodesEvidence extends Seen {
  readonly happened: readonly Happened[];
  readonly probes: Probes;
  /** Milliseconds from a fault until the calls that it broke off were recorded as interrupted. */
  readonly takeovers: readonly number[];
}

const CHECKS: Readonly<Record<string, (seen: Seen, patience: number) => Iterable<string>>> = {
  "no task is lost, and each ended in an allowed way": taskFaults,
  "each task has ended once": endFaults,
  "events add up": eventFaults,
  "each scheduled time leads to one task": scheduleFaults,
  "no tool is called twice": callFaults,
  "a stopped agent calls nothing": (seen, patience) => stopFaults(seen, STOP_GRACE_MS * patience),
  "a task that a stop has ended was stopped": (seen, patience) =>
    endedByStopFaults(seen, STOP_GRACE_MS * patience),
  "each intent has one outcome": intentFaults,
  "credits add up": creditFaults,
  "no call begins when its budget is spent or reserved": budgetFaults,
  "a task that ended for lack of credits was refused a call": exhaustedFaults,
  "documents are as acknowledged": documentFaults,
  "the copy of the database is whole": fileFaults,
};

/** Runs it to the end, and adds every fault to `world.faults`. */
export async function soakNodes(run: NodesRun): Promise<NodesEvidence> {
  const { nodes, fault, seed, binary, tasksARound, patience, progress } = run;
  const noClocks = missingClocks();
  if (fault === "clocks" && noClocks !== undefined) throw new Error(noClocks);
  const kinds =
    fault === "all" ? FAULT_KINDS.filter((kind) => kind !== "clocks" || noClocks === undefined) : [fault];
  const random = seeded(seed);
  const faults = new Faults();
  const upstreams = startUpstreams(seeded(seed + 1));
  const cluster = await NodeCluster.prepare({
    ...{ nodes, binary, patience },
    env: (index) => (kinds.includes("clocks") ? wrongClock(index) : {}),
    settings: (checkpoints) => settings(upstreams, checkpoints),
  });
  run.prepared(cluster);
  // At the same time: the first one creates the schema and the workspace, and all have the same admin token. All are waited
  // for, so that none is left behind if one fails.
  for (const started of await Promise.allSettled(cluster.nodes.map((node) => node.start())))
    if (started.status === "rejected") throw started.reason;
  const dropped = (what: string) => faults.add("answers", what);
  const working = new Set<Promise<void>>();
  let life = new NodesLife(cluster, dropped);
  const world: World = {
    ...{ random, faults, upstreams, asked: [], ownCalls: [], documents: [], decided: new Map() },
    stops: { asked: 0, mayHold: false },
    ...(await furnish(life, upstreams)),
    inLife(work) {
      const tracked = work.finally(() => working.delete(tracked));
      working.add(tracked);
    },
  };
  const happened: Happened[] = [];
  const probes: Probes = { stops: [] };
  const until = performance.now() + run.seconds * 1_000;
  const disturbing = disturb({ cluster, kinds, random: seeded(seed + 2), until, happened });
  let isOver = false;
  const probing = probeStops({ cluster, world, probes, mustHoldMs: STOP_GRACE_MS * patience }, () => isOver);
  for (let round = 1; performance.now() < until; round++) {
    faults.round = round;
    expectLateStops(world);
    live(world, life, tasksARound);
    await Bun.sleep(LIFE_MS);
    life.end();
    await Promise.all(working);
    progress(`${happened.length} faults made, ${world.asked.length} tasks, ${faults.found.length} found`);
    life = new NodesLife(cluster, dropped);
  }
  isOver = true;
  await disturbing;
  await probing;
  while (cluster.isDisturbed || cluster.nodes.some((node) => node.isDisturbed)) await Bun.sleep(200);
  faults.round = null;
  expectLateStops(world);
  const left = await finish(world, life);
  life.end();
  await Promise.all(working);
  for (const [index, node] of cluster.nodes.entries()) {
    const code = await node.stop();
    if (code !== 0) faults.add("end", `server ${index} ended with exit code ${code}`);
  }
  const file = await copiedFile(cluster, faults);
  await upstreams.close();
  const seen: Seen = { ...left, world, file };
  for (const [check, find] of Object.entries(CHECKS))
    for (const text of find(seen, patience)) faults.add(check, text);
  const takeovers = takeoversIn(file.entries, happened, TAKEOVER_MS * patience, faults);
  return { ...seen, happened, probes, takeovers };
}

/**
 * Lets the workspace be resumed once more: a stop that one server has answered while it could not reach the database is stored
 * once it can, even if another server has resumed the workspace by then.
 */
function expectLateStops({ stops }: World): void {
  stops.mayHold = stops.asked > 0;
}

/**
 * Copies the database into a data directory, which verifies all ledgers, and verifies that directory with the checkpoints that each
 * server has kept outside.
 */
async function copiedFile(cluster: NodeCluster, faults: Faults): Promise<Seen["file"]> {
  const data = join(cluster.home, "copy");
  const copied = await cluster.cli(["store", "copy", "--from", "--data", data]);
  if (copied.code !== 0) throw new Error(`the database cannot be copied: ${copied.stderr}`);
  for (const { checkpoints } of cluster.nodes) {
    if (!existsSync(checkpoints)) continue;
    const { code, stdout, stderr } = await cluster.cli([
      ...["ledger", "verify", "--data", data, "--checkpoint", checkpoints],
    ]);
    if (code !== 0) faults.add("ledger", `exit code ${code}: ${stdout}${stderr}`);
  }
  return readEvidenceFile(join(data, "gatehouse.db"));
}

/** How long calls that a fault had broken off were open after it. */
function takeoversIn(
  entries: readonly TimedEntry[],
  happened: readonly Happened[],
  mostMs: number,
  faults: Faults,
): number[] {
  const intents = new Map(
    entries.filter(({ phase }) => phase === "intent").map((entry) => [entry.seq, entry]),
  );
  const found: number[] = [];
  for (const { phase, code, ref, ts, seq } of entries) {
    const intent =
      phase === "outcome" && code === "interrupted" && ref !== undefined ? intents.get(ref) : undefined;
    if (!intent) continue;
    const ended = Date.parse(ts);
    const cause = happened.findLast(({ at }) => at <= ended);
    if (!cause || cause.kind === "postgres" || cause.kind === "terminate" || Date.parse(intent.ts) > cause.at)
      continue;
    found.push(ended - cause.at);
    if (ended - cause.at > mostMs)
      faults.add("takeover", `entry ${seq} closes a call ${ended - cause.at} ms after its server was lost`);
  }
  return found;
}

import { alone, compared, type Figure } from "../figures.ts";
import { cpuMicrosOfTree } from "../processes/usage.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Round, Workshop } from "../workshop.ts";
import { CALL_TOOL, DISPATCH, type Kind, READ } from "./kinds.ts";
import { Nodes } from "./nodes.ts";
import { startPostgres } from "./postgres.ts";
import { createWorkspaces } from "./workspaces.ts";

const MANY = 8;
/** Divided by the number of servers. */
const QUEUES = 24;
const SERVERS = [1, 2, 3] as const;
/** Chosen so that each server gets the same number of connections of each workspace. */
const CONNECTIONS = 48;
const MICROS_PER_SECOND = 1_000_000;

interface CallsRound extends Round {
  /** Microseconds of PostgreSQL's CPU per answer; 0 if there is none. */
  readonly postgresMicros: number | null;
}

/** Calls of workspaces that have nothing to do with each other. */
export function manyWorkspaces(workshop: Workshop): Promise<Figure[]> {
  return measureCalls(workshop, { id: "scale.many", workspaces: () => MANY });
}

/**
 * Each server has a queue for each workspace, and the calls of a queue share commits. With the same workspaces, more servers
 * have more queues with fewer calls each. Here their number stays the same, so what servers cost by themselves is seen.
 */
export function fixedQueues(workshop: Workshop): Promise<Figure[]> {
  return measureCalls(workshop, { id: "scale.queues", workspaces: (servers) => QUEUES / servers });
}

/** Calls of one workspace, whose ledger is written by one transaction at a time on whatever server. */
export function oneWorkspace(workshop: Workshop): Promise<Figure[]> {
  return measureCalls(workshop, { id: "scale.one", workspaces: () => 1 });
}

interface Measured {
  readonly id: string;
  readonly workspaces: (servers: number) => number;
}

/**
 * One, two and three servers, each group with a database of its own in the same PostgreSQL, beside a server with a data
 * directory. All of them run at the same time; each round loads one of them.
 */
async function measureCalls(workshop: Workshop, { id, workspaces }: Measured): Promise<Figure[]> {
  const postgres = await startPostgres(workshop);
  const upstream = await workshop.upstream();
  // The tasks wait behind one for each server, whose model never answers.
  const yaml = settings({ upstream: upstream.port, runningTasks: 1 });
  const local = await Nodes.local(workshop, yaml);
  const groups = await Promise.all(
    SERVERS.map((count) => Nodes.shared(workshop, postgres, Array<string>(count).fill(yaml))),
  );
  const all = [local, ...groups];
  const tokens = await Promise.all(
    all.map(({ first, ports }) => createWorkspaces(first, workspaces(ports.length))),
  );

  const figures: Figure[] = [];
  for (const kind of [READ, CALL_TOOL, DISPATCH]) {
    const contenders: Record<string, () => Promise<CallsRound>> = {};
    for (const [index, nodes] of all.entries()) {
      const request = await requestsTo(nodes, tokens[index] ?? [], kind);
      const job = { request, connections: CONNECTIONS, spreadMs: 0, expect: kind.expect };
      contenders[index] = async () => {
        const before = cpuMicrosOfTree(postgres.pid);
        const round = await workshop.load(nodes, job);
        const after = cpuMicrosOfTree(postgres.pid);
        const isKnown = before !== null && after !== null;
        const postgresMicros = isKnown ? (after - before) / round.answered : null;
        return { ...round, postgresMicros: nodes === local ? 0 : postgresMicros };
      };
    }
    const rounds = await alternate(contenders, workshop.rounds);
    for (const [index, count] of SERVERS.entries()) {
      const of = `${counted(workspaces(count), "workspace")}, ${counted(count, "server")}`;
      const pairs = rounds.map((round) => ({ baseline: round[0], gatehouse: round[index + 1] }));
      figures.push(...figuresOf(`${id}.${kind.id}.${count}`, `${kind.label}, ${of}`, pairs));
    }
  }
  await Promise.all(all.map((nodes) => nodes.stop()));
  await upstream.stop();
  await postgres.remove();
  return figures;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** A list of requests for each connection, so that each server gets calls of each workspace. */
function requestsTo({ ports }: Nodes, tokens: readonly string[], kind: Kind): Promise<string[][]> {
  return Promise.all(
    Array.from({ length: CONNECTIONS }, (_, index) =>
      kind.requests({
        port: ports[index % ports.length] ?? 0,
        token: tokens[Math.floor(index / ports.length) % tokens.length] ?? "",
      }),
    ),
  );
}

function figuresOf(
  id: string,
  label: string,
  rounds: readonly {
    readonly baseline: CallsRound | undefined;
    readonly gatehouse: CallsRound | undefined;
  }[],
): Figure[] {
  const pairs = (of: (round: CallsRound) => number | null) =>
    rounds.map(({ baseline, gatehouse }) => ({
      baseline: baseline === undefined ? null : of(baseline),
      gatehouse: gatehouse === undefined ? null : of(gatehouse),
    }));
  const perCore = ({ cpuMicros, postgresMicros }: CallsRound): number | null =>
    cpuMicros === null || postgresMicros === null || cpuMicros + postgresMicros === 0
      ? null
      : MICROS_PER_SECOND / (cpuMicros + postgresMicros);
  return [
    compared(
      { id: `${id}.rate`, label, unit: "1/s" },
      pairs(({ perSecond }) => perSecond),
    ),
    compared(
      { id: `${id}.per_core`, label: "  per second of CPU, all processes", unit: "1/s" },
      pairs(perCore),
    ),
    compared(
      { id: `${id}.cpu`, label: "  server CPU per operation", unit: "µs" },
      pairs(({ cpuMicros }) => cpuMicros),
    ),
    alone(
      { id: `${id}.postgres_cpu`, label: "  PostgreSQL's CPU per operation", unit: "µs" },
      rounds.map(({ gatehouse }) => gatehouse?.postgresMicros ?? null),
    ),
  ];
}

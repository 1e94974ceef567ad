import { type Aim, compared, type Figure } from "../figures.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { residentBytesOfTree } from "../processes/usage.ts";
import { alternate } from "../rounds.ts";
import { writesOfRuns } from "../run/writes.ts";
import { settings } from "../setup.ts";
import type { HelperServer, Round, Workshop } from "../workshop.ts";
import { CALLS, type GrowthCall, jobOf } from "./calls.ts";
import { diskFigures } from "./disk.ts";
import { type FilledHistory, fillHistory } from "./filled.ts";
import { sizesUpTo, sizeText } from "./size.ts";

/** Nothing on the way of a call may grow with history. */
const FLAT: Aim = { of: "ratio", relation: "<", value: 1.2 };
const BYTES_PER_MB = 1_000_000;
const MOST_STARTS = 5;
const REST_MS = 2_000;

/** A filled data directory with the server that runs on it. */
interface RunningHistory {
  readonly history: FilledHistory;
  readonly gatehouse: Gatehouse;
}

/**
 * The same calls on histories of three lengths, each ten times as long as the one before, compared with the shortest.
 * All servers run at the same time, and one caller calls one of them at a time.
 */
export async function growth(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const histories: FilledHistory[] = [];
  for (const size of sizesUpTo(workshop.entries)) {
    histories.push(await fillHistory(workshop, size, upstream.port));
  }
  const starts = await startFigures(workshop, histories, upstream);
  const running: RunningHistory[] = [];
  for (const history of histories) {
    const gatehouse = await start(workshop, history, upstream);
    running.push({ history, gatehouse });
  }
  await Bun.sleep(REST_MS);
  const idle = running.map(({ gatehouse }) => resident(gatehouse));
  const calls: Figure[] = [];
  for (const [name, call] of Object.entries(CALLS))
    calls.push(...(await callFigures(workshop, name, call, running)));
  const pages = await pageFigures(workshop, running);
  const busy = running.map(({ gatehouse }) => resident(gatehouse));
  for (const { gatehouse } of running) await gatehouse.stop();
  await upstream.stop();
  return [
    ...calls,
    ...pages,
    ...starts,
    ...besideFirst(histories, "resident", "resident memory, 2 s after a start", "MB", [idle]),
    ...besideFirst(histories, "resident.called", "resident memory after these calls", "MB", [busy]),
    ...(await diskFigures(workshop, histories)),
  ];
}

function start(workshop: Workshop, { dataDir }: FilledHistory, upstream: HelperServer): Promise<Gatehouse> {
  return workshop.gatehouse({ dataDir, yaml: settings({ upstream: upstream.port }) });
}

async function callFigures(
  workshop: Workshop,
  name: string,
  call: GrowthCall,
  running: readonly RunningHistory[],
): Promise<Figure[]> {
  console.error(`  ${call.label}`);
  const contenders: Record<string, () => Promise<Round>> = {};
  for (const [index, { history, gatehouse }] of running.entries()) {
    const job = jobOf(call, history, gatehouse);
    contenders[index] = () => workshop.load(gatehouse, job, workshop.seconds / 4);
  }
  const rounds = await alternate(contenders, workshop.rounds);
  const values = (of: (round: Round) => number | null) =>
    rounds.map((round) => running.map((_, index) => (round[index] ? of(round[index]) : null)));
  const histories = running.map(({ history }) => history);
  const aim = call.grows ? undefined : FLAT;
  const latency = values((round) => round.p50);
  const cpu = values((round) => round.cpuMicros);
  return [
    ...besideFirst(histories, `${name}.p50`, `${call.label}, p50`, "ms", latency, aim),
    ...besideFirst(histories, `${name}.cpu`, "  server CPU", "µs", cpu, aim),
  ];
}

async function pageFigures(workshop: Workshop, running: readonly RunningHistory[]): Promise<Figure[]> {
  const contenders: Record<string, () => Promise<number>> = {};
  for (const [index, { gatehouse }] of running.entries()) {
    contenders[index] = async () => (await writesOfRuns(gatehouse)).pages;
  }
  const rounds = await alternate(contenders, workshop.rounds);
  const values = rounds.map((round) => running.map((_, index) => round[index] ?? null));
  const histories = running.map(({ history }) => history);
  return besideFirst(histories, "run.pages", "pages that a run alone writes", "count", values, FLAT);
}

async function startFigures(
  workshop: Workshop,
  histories: readonly FilledHistory[],
  upstream: HelperServer,
): Promise<Figure[]> {
  const contenders: Record<string, () => Promise<number>> = {};
  for (const [index, history] of histories.entries()) {
    contenders[index] = async () => {
      const begun = performance.now();
      const gatehouse = await start(workshop, history, upstream);
      const took = performance.now() - begun;
      await gatehouse.stop();
      return took;
    };
  }
  const rounds = await alternate(contenders, Math.min(workshop.rounds, MOST_STARTS));
  const values = rounds.map((round) => histories.map((_, index) => round[index] ?? null));
  return besideFirst(histories, "start", "ready after a start", "ms", values, FLAT);
}

function resident({ pid }: Gatehouse): number | null {
  const bytes = residentBytesOfTree(pid);
  return bytes === null ? null : bytes / BYTES_PER_MB;
}

/** One figure for each longer history, beside the shortest. `values` has a list for each round, by history. */
function besideFirst(
  histories: readonly FilledHistory[],
  id: string,
  label: string,
  unit: Figure["unit"],
  values: readonly (readonly (number | null)[])[],
  aim?: Aim,
): Figure[] {
  const [first, ...longer] = histories;
  if (!first) return [];
  return longer.map(({ size }, index) =>
    compared(
      { id: `growth.${id}.${size.entries}`, label: `${label}: ${sizeText(size)}`, unit },
      values.map((round) => ({ baseline: round[0] ?? null, gatehouse: round[index + 1] ?? null })),
      aim,
    ),
  );
}

import { type Aim, alone, type Figure } from "../figures.ts";
import { residentBytesOfTree } from "../processes/usage.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Round, Workshop } from "../workshop.ts";
import { LEAST_INGEST } from "./aims.ts";
import { ingest, VaultClient } from "./client.ts";
import { Passages } from "./passages.ts";
import { checkAnswers, createSearchers, PLACES, type Reach, SEARCHERS, searchLoad } from "./searchers.ts";

const BYTES_PER_MB = 1_000_000;
/** Time until memory that only writing needed has been released. */
const REST_MS = 3_000;
const PROGRESS = 10;
/** The aims apply from this many passages on. */
const AIMED = 100_000;
const MOST_RESIDENT: Aim = { of: "gatehouse", relation: "<", value: 250 };
const LONGEST: Readonly<Record<Reach, Aim>> = {
  scope: { of: "gatehouse", relation: "<", value: 3 },
  all: { of: "gatehouse", relation: "<", value: 30 },
};

/** Many passages in many scopes, and agents that search them: each its own scope, or all of them everything. */
export async function scale(workshop: Workshop): Promise<Figure[]> {
  const dataDir = workshop.folder();
  const gatehouse = await workshop.gatehouse({ yaml: settings(), dataDir });
  const passages = Passages.of(workshop.collections);
  const count = workshop.passages;
  const step = Math.ceil(count / PROGRESS);
  const { seconds } = await ingest(new VaultClient(gatehouse.port, gatehouse.admin), count, (index) => {
    if (index % step === 0) console.error(`  ${index} of ${count} passages have been added`);
    return passages.passage(index);
  });
  await Bun.sleep(REST_MS);
  const loaded = residentBytesOfTree(gatehouse.pid);

  const searchers = {
    scope: await createSearchers(gatehouse, passages, "scope"),
    all: await createSearchers(gatehouse, passages, "all"),
  };
  for (const reach of ["scope", "all"] as const) await checkAnswers(gatehouse, searchers[reach], "hybrid");
  const search = (reach: Reach, agents: number) => () =>
    workshop.load(gatehouse, searchLoad(searchers[reach].slice(0, agents), "hybrid"));
  const rounds = await alternate(
    {
      scopeTogether: search("scope", SEARCHERS),
      allTogether: search("all", SEARCHERS),
      scopeSingle: search("scope", 1),
      allSingle: search("all", 1),
    },
    workshop.rounds,
  );
  const searched = residentBytesOfTree(gatehouse.pid);
  await gatehouse.stop();
  workshop.filledVault = { dataDir, searchers };

  const aim = (one: Aim) => (count >= AIMED ? one : undefined);
  const size = `${count.toLocaleString("en-US")} passages`;
  return [
    alone(
      { id: "vault.scale.ingest", label: `${size} added`, unit: "1/s" },
      [count / seconds],
      aim(LEAST_INGEST),
    ),
    resident("loaded", "  resident once they are added", loaded, aim(MOST_RESIDENT)),
    ...(["scope", "all"] as const).flatMap((reach) => [
      ...searchFigures(
        `vault.scale.${reach}`,
        `search ${PLACES[reach]}, ${SEARCHERS} agents at once`,
        rounds.map((round) => round[`${reach}Together`]),
        aim(LONGEST[reach]),
      ),
      ...searchFigures(
        `vault.scale.${reach}.single`,
        `search ${PLACES[reach]}, one agent`,
        rounds.map((round) => round[`${reach}Single`]),
      ),
    ]),
    resident("searched", "resident after the searches", searched, aim(MOST_RESIDENT)),
  ];
}

function searchFigures(id: string, label: string, rounds: readonly Round[], p50?: Aim): Figure[] {
  const values = (of: (round: Round) => number | null) => rounds.map(of);
  return [
    alone(
      { id: `${id}.rate`, label, unit: "1/s" },
      values((round) => round.perSecond),
    ),
    alone(
      { id: `${id}.p50`, label: "  latency p50", unit: "ms" },
      values((round) => round.p50),
      p50,
    ),
    alone(
      { id: `${id}.p99`, label: "  latency p99", unit: "ms" },
      values((round) => round.p99),
    ),
    alone(
      { id: `${id}.cpu`, label: "  server CPU per operation", unit: "µs" },
      values((round) => round.cpuMicros),
    ),
  ];
}

function resident(what: string, label: string, bytes: number | null, aim?: Aim): Figure {
  const size = bytes === null ? null : bytes / BYTES_PER_MB;
  return alone({ id: `vault.scale.resident.${what}`, label, unit: "MB" }, [size], aim);
}

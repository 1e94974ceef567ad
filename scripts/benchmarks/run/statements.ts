import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { alone, type Figure } from "../figures.ts";
import { Skipped } from "../report.ts";
import { COUNTERS, readCounters } from "../servers/counters.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { runAlone, warmUp } from "./one-run.ts";

const PRELOADED = join(import.meta.dir, "..", "servers", "count-statements.ts");
const RUNS = 20;
const MOST = { of: "gatehouse", relation: "<", value: 16.5 } as const;

/** The SQL statements of a run when nothing else runs, counted in every thread of the server. */
export async function statements(workshop: Workshop): Promise<Figure[]> {
  if (workshop.binary)
    throw new Skipped("statements are only counted in a server that runs from its sources");
  const upstream = await workshop.upstream();
  const file = join(workshop.folder(), "counters");
  writeFileSync(file, new Uint8Array(COUNTERS.bytes));
  const gatehouse = await workshop.gatehouse({
    yaml: settings({ upstream: upstream.port }),
    preload: PRELOADED,
    env: { [COUNTERS.variable]: file },
  });
  await warmUp(gatehouse);
  const rounds: { readonly statements: number; readonly control: number }[] = [];
  while (rounds.length < workshop.rounds) {
    const before = readCounters(file);
    await runAlone(gatehouse, RUNS);
    const after = readCounters(file);
    rounds.push({
      statements: (after.statements - before.statements) / RUNS,
      control: (after.control - before.control) / RUNS,
    });
  }
  await gatehouse.stop();
  await upstream.stop();
  return [
    alone(
      { id: "run.writes.statements", label: "SQL statements of a run alone", unit: "count" },
      rounds.map((round) => round.statements),
      MOST,
    ),
    alone(
      { id: "run.writes.control", label: "  besides: BEGIN, COMMIT, savepoints, PRAGMA", unit: "count" },
      rounds.map((round) => round.control),
    ),
  ];
}

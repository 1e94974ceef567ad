import { alone, type Figure } from "../figures.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { countWal } from "../processes/wal.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { runAlone, warmUp } from "./one-run.ts";

/** Runs of one round. They write less than SQLite's log holds before it is written back. */
const RUNS = 20;
const MOST_COMMITS = { of: "gatehouse", relation: "<", value: 2.5 } as const;
const MOST_PAGES = { of: "gatehouse", relation: "<", value: 20.5 } as const;

/** The transactions of a run, and the pages that they write. */
export interface RunWrites {
  readonly commits: number;
  readonly pages: number;
}

/** What one run without tools writes when nothing else runs: transactions, each with its sync, and pages. */
export async function writes(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await warmUp(gatehouse);
  const rounds: RunWrites[] = [];
  while (rounds.length < workshop.rounds) rounds.push(await writesOfRuns(gatehouse));
  await gatehouse.stop();
  await upstream.stop();
  return [
    alone(
      { id: "run.writes.commits", label: "transactions of a run alone", unit: "count" },
      rounds.map(({ commits }) => commits),
      MOST_COMMITS,
    ),
    alone(
      { id: "run.writes.pages", label: "  pages that they write", unit: "count" },
      rounds.map(({ pages }) => pages),
      MOST_PAGES,
    ),
  ];
}

/** Runs some tasks, one after another. */
export async function writesOfRuns(gatehouse: Gatehouse): Promise<RunWrites> {
  for (;;) {
    const before = countWal(gatehouse.folder);
    await runAlone(gatehouse, RUNS);
    const after = countWal(gatehouse.folder);
    // The log was begun again in between.
    if (after.round !== before.round) continue;
    return {
      commits: (after.commits - before.commits) / RUNS,
      pages: (after.pages - before.pages) / RUNS,
    };
  }
}

import { alone, type Figure } from "../figures.ts";
import { countWal } from "../processes/wal.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { runAlone, warmUp } from "./one-run.ts";

/** Runs of one round. They write less than SQLite's log holds before it is written back. */
const RUNS = 20;
const MOST_COMMITS = { of: "gatehouse", relation: "<", value: 2.5 } as const;
const MOST_PAGES = { of: "gatehouse", relation: "<", value: 20.5 } as const;

/** What one run without tools writes when nothing else runs: transactions, each with its sync, and pages. */
export async function writes(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await warmUp(gatehouse);
  const rounds: { readonly commits: number; readonly pages: number }[] = [];
  while (rounds.length < workshop.rounds) {
    const before = countWal(gatehouse.folder);
    await runAlone(gatehouse, RUNS);
    const after = countWal(gatehouse.folder);
    // The log was begun again during the round.
    if (after.round !== before.round) continue;
    rounds.push({
      commits: (after.commits - before.commits) / RUNS,
      pages: (after.pages - before.pages) / RUNS,
    });
  }
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

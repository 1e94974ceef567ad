import { compared, type Figure } from "../figures.ts";
import { alternate } from "../rounds.ts";
import type { Workshop } from "../workshop.ts";
import { appendsResult } from "./jobs.ts";

/** The callers at once, and the least share of the rate of SQLite's own inserts. */
const LEAST_RATES = [
  [1, 0.6],
  [8, 0.6],
  [64, 0.7],
] as const;

/** Entries that are on disk before their caller continues, compared with SQLite's own inserts of the same bytes. */
export async function appends(workshop: Workshop): Promise<Figure[]> {
  const worker = workshop.worker("ledger/worker.ts");
  const folder = workshop.folder();
  const rate = async (into: "ledger" | "table", callers: number, rows: number) => {
    const asked = { kind: "appends", into, folder, callers, rows, seconds: workshop.seconds };
    return (await worker.ask(asked, appendsResult)).perSecond;
  };
  const figures: Figure[] = [];
  for (const [callers, leastRate] of LEAST_RATES) {
    const rounds = await alternate(
      {
        each: () => rate("table", callers, 1),
        ledger: () => rate("ledger", callers, 1),
        together: () => rate("table", callers, callers),
      },
      workshop.rounds,
    );
    figures.push(
      compared(
        {
          id: `ledger.append_${callers}`,
          label: `durable entries, ${callers} ${callers === 1 ? "caller" : "callers"}; bare: a transaction each`,
          unit: "1/s",
        },
        rounds.map(({ each, ledger }) => ({ baseline: each, gatehouse: ledger })),
        { of: "ratio", relation: ">=", value: leastRate },
      ),
    );
    if (callers === 1) continue;
    figures.push(
      compared(
        {
          id: `ledger.append_${callers}.together`,
          label: `  bare: ${callers} to a transaction`,
          unit: "1/s",
        },
        rounds.map(({ together, ledger }) => ({ baseline: together, gatehouse: ledger })),
      ),
    );
  }
  await worker.end();
  return figures;
}

import { compared, type Figure } from "../figures.ts";
import { alternate } from "../rounds.ts";
import type { Workshop } from "../workshop.ts";
import { appendsResult } from "./jobs.ts";

const CALLERS = [1, 8, 64];
const LEAST_RATE = { of: "ratio", relation: ">=", value: 0.6 } as const;
/** For the most callers, of a table that gets as many rows in each transaction. */
const LEAST_RATE_TOGETHER = { of: "ratio", relation: ">=", value: 0.7 } as const;
const MOST_CALLERS = Math.max(...CALLERS);

/** Entries that are on disk before their caller continues, compared with SQLite's own inserts of the same bytes. */
export async function appends(workshop: Workshop): Promise<Figure[]> {
  const worker = workshop.worker("ledger/worker.ts");
  const folder = workshop.folder();
  const rate = async (into: "ledger" | "table", callers: number, rows: number) => {
    const asked = { kind: "appends", into, folder, callers, rows, seconds: workshop.seconds };
    return (await worker.ask(asked, appendsResult)).perSecond;
  };
  const figures: Figure[] = [];
  for (const callers of CALLERS) {
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
        LEAST_RATE,
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
        callers === MOST_CALLERS ? LEAST_RATE_TOGETHER : undefined,
      ),
    );
  }
  await worker.end();
  return figures;
}

/** Measures the ledger in a separate process, so that nothing else is in its memory. */

import type { Ledger } from "../../../src/ledger/ledger.ts";
import { answerLines } from "../processes/lines.ts";
import { appendToLedger, openEmptyLedger, PlainTable } from "./appending.ts";
import { fill, prove } from "./filling.ts";
import { type AppendsJob, job } from "./jobs.ts";

let ledger: Ledger | undefined;
let table: PlainTable | undefined;

async function append({ into, folder, rows, callers, seconds }: AppendsJob): Promise<object> {
  if (into === "table") {
    table ??= new PlainTable(folder);
    return { perSecond: table.append(rows, seconds) };
  }
  ledger ??= await openEmptyLedger(folder);
  return { perSecond: await appendToLedger(ledger, callers, seconds) };
}

await answerLines((message) => {
  const asked = job.parse(message);
  switch (asked.kind) {
    case "appends":
      return append(asked);
    case "fill":
      return fill(asked.dataDir, asked.entries);
    case "proofs":
      return prove(asked.dataDir, asked.seconds);
  }
});

import type { Evidence } from "./soak.ts";

/** What was done, and the results, in aligned lines. */
export function summary(
  { world, tasks, file, kills, orderlyEnds, startTimes, sizes, greatestLog }: Evidence,
  ms: number,
): string {
  const statuses = Map.groupBy(tasks.values(), ({ status, error }) =>
    error ? `${status} ${error.code}` : status,
  );
  const receipts = [...world.upstreams.receipts.values()];
  const readers = world.asked.flatMap(({ reader }) => (reader ? [reader] : []));
  const rows: readonly (readonly [string, string])[] = [
    ["kills", String(kills)],
    [
      "ended in an orderly way",
      `${orderlyEnds.length}, ${orderlyEnds.reduce((sum, { givenBack }) => sum + givenBack, 0)} tasks handed back`,
    ],
    ["time", `${Math.round(ms / 1000)} s`],
    ["from start to ready", `p50 ${percentile(startTimes, 50)} ms, p99 ${percentile(startTimes, 99)} ms`],
    ["tasks", `${tasks.size}: ${[...statuses].map(([status, of]) => `${of.length} ${status}`).join(", ")}`],
    [
      "tool calls received",
      `${receipts.length}, ${receipts.filter(({ count }) => count > 1).length} of them repeated`,
    ],
    [
      "  of clients over MCP",
      `${world.ownCalls.length} asked, ${world.ownCalls.filter(({ isAnswered }) => isAnswered).length} answered`,
    ],
    ["  decided by people", String(world.decided.size)],
    ["streams resumed", String(readers.reduce((sum, { resumed }) => sum + resumed, 0))],
    ["stops of the workspace", String(world.stops.asked)],
    [
      "credits",
      `${(file.spending.reduce((sum, { credits }) => sum + credits, 0) / 1_000_000).toFixed(2)} spent, ${file.entries.filter(({ code }) => code === "credits_exhausted").length} refusals for lack of them`,
    ],
    ["documents", String(world.documents.length)],
    [
      "ledger entries",
      `${file.entries.length}, ${file.entries.filter(({ code }) => code === "interrupted").length} interrupted`,
    ],
    ["database", `${megabytes(sizes.get("gatehouse.db") ?? 0)}, log ${megabytes(greatestLog)} at most`],
    ["faults", String(world.faults.found.length)],
  ];
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows.map(([label, value]) => `${label.padEnd(width)}  ${value}`).join("\n");
}

function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

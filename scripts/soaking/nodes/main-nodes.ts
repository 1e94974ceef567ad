import { endOnInterrupt } from "../interrupted.ts";
import type { NodeCluster } from "./cluster.ts";
import type { FaultKind } from "./disturbing.ts";
import { type NodesEvidence, soakNodes } from "./soak-nodes.ts";

const TASKS_A_ROUND = 12;
const DEFAULT_SECONDS = 120;

export interface NodesOptions {
  readonly nodes: number;
  readonly fault: FaultKind | "all";
  readonly seconds: number | null;
  readonly seed: number;
  readonly binary: boolean;
}

/** @returns the exit code */
export async function mainNodes({ seconds, ...options }: NodesOptions): Promise<number> {
  const { seed, nodes, fault } = options;
  let cluster: NodeCluster | null = null;
  const unlessInterrupted = endOnInterrupt(async () => cluster?.end());
  const begun = performance.now();
  console.log(`seed ${seed}, ${nodes} servers, ${fault === "all" ? "all faults" : `the fault ${fault}`}`);
  const soaking = soakNodes({
    ...options,
    seconds: seconds ?? DEFAULT_SECONDS,
    tasksARound: TASKS_A_ROUND,
    patience: 1,
    prepared: (prepared) => {
      cluster = prepared;
    },
    progress: (line) => console.log(`${line}, ${Math.round((performance.now() - begun) / 1_000)} s`),
  });
  const evidence = await soaking.catch(unlessInterrupted);
  const { found } = evidence.world.faults;
  for (const { check, round, text } of found)
    console.log(
      `FAULT  seed ${seed}  ${round === null ? "at the end" : `round ${round}`}  ${check}: ${text}`,
    );
  console.log(`\n${summaryOf(evidence, performance.now() - begun)}`);
  const ended = cluster as NodeCluster | null;
  await ended?.end();
  if (found.length === 0) ended?.remove();
  else console.log(`\nThe files are kept: ${ended?.home}`);
  return found.length === 0 ? 0 : 1;
}

function summaryOf({ world, tasks, file, happened, probes, takeovers }: NodesEvidence, ms: number): string {
  const made = [...Map.groupBy(happened, ({ kind }) => kind)]
    .map(([kind, of]) => `${of.length} ${kind}`)
    .join(", ");
  const statuses = [
    ...Map.groupBy(tasks.values(), ({ status, error }) => (error ? `${status} ${error.code}` : status)),
  ];
  const receipts = [...world.upstreams.receipts.values()];
  const rows: readonly (readonly [string, string])[] = [
    ["faults made", made === "" ? "none" : made],
    ["time", `${Math.round(ms / 1_000)} s`],
    ["tasks", `${tasks.size}: ${statuses.map(([status, of]) => `${of.length} ${status}`).join(", ")}`],
    [
      "tool calls received",
      `${receipts.length}, ${receipts.filter(({ count }) => count > 1).length} of them repeated`,
    ],
    ["ledger entries", String(file.entries.length)],
    ["a lost server's calls recorded after", spread(takeovers)],
    ["a stop felt on the last server after", spread(probes.stops)],
    ["faults found", String(world.faults.found.length)],
  ];
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows.map(([label, value]) => `${label.padEnd(width)}  ${value}`).join("\n");
}

function spread(values: readonly number[]): string {
  if (values.length === 0) return "never";
  const sorted = values.toSorted((a, b) => a - b);
  const at = (percent: number) =>
    Math.round(sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0);
  return `p50 ${at(50)} ms, p99 ${at(99)} ms, ${values.length} times`;
}

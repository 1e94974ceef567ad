import { alone, type Figure } from "../figures.ts";
import { residentBytes } from "../processes/usage.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { runAlone, warmUp } from "./one-run.ts";

const RUNS = 200;
const BYTES_PER_KB = 1_000;

/**
 * What a run allocates: the resident memory that it adds to a server whose garbage collector is off. Objects, strings
 * and buffers count; memory that is freed without the collector does not.
 */
export async function allocations(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({
    yaml: settings({ upstream: upstream.port }),
    env: { BUN_JSC_useGC: "0" },
  });
  await warmUp(gatehouse);
  const rounds: (number | null)[] = [];
  while (rounds.length < workshop.rounds) {
    const before = residentBytes(gatehouse.pid);
    await runAlone(gatehouse, RUNS);
    const after = residentBytes(gatehouse.pid);
    rounds.push(before === null || after === null ? null : (after - before) / RUNS / BYTES_PER_KB);
  }
  await gatehouse.stop();
  await upstream.stop();
  return [alone({ id: "run.allocated", label: "memory allocated by a run alone", unit: "kB" }, rounds)];
}

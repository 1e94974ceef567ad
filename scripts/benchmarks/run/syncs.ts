import { readFileSync } from "node:fs";
import { join } from "node:path";
import { alone, type Figure } from "../figures.ts";
import { Skipped } from "../report.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { runAlone, warmUp } from "./one-run.ts";

const RUNS = 20;
const MOST = { of: "gatehouse", relation: "<", value: 2.5 } as const;
const ATTACHED = /strace: Process \d+ attached/;

/** The syncs that a run waits for when nothing else runs, as the kernel sees them. */
export async function syncs(workshop: Workshop): Promise<Figure[]> {
  const strace = Bun.which("strace");
  if (strace === null) throw new Skipped("there is no strace (Debian's package strace)");
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await warmUp(gatehouse);
  const rounds: number[] = [];
  while (rounds.length < workshop.rounds) {
    const file = join(workshop.folder(), "syncs");
    const tracer = workshop.tracer([strace, "-f", "-e", "trace=fsync,fdatasync", "-o", file], gatehouse.pid);
    if (!(await tracer.printed(ATTACHED))) throw new Skipped("this system does not let strace attach");
    await runAlone(gatehouse, RUNS);
    await tracer.detach();
    rounds.push(syncsIn(readFileSync(file, "utf8")) / RUNS);
  }
  await gatehouse.stop();
  await upstream.stop();
  return [alone({ id: "run.writes.syncs", label: "syncs of a run alone", unit: "count" }, rounds, MOST)];
}

/** A call that another thread interrupts takes two lines; the second names it as resumed. */
function syncsIn(trace: string): number {
  return trace.match(/ (?:fsync|fdatasync)\(/g)?.length ?? 0;
}

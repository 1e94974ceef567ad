/**
 * `scripts/bench`: measures, prints, and exits with 0 unless something failed (1) or the arguments were wrong (2).
 */
import { AREAS, ON_SEPARATE_CORES } from "./areas.ts";
import type { Figure } from "./figures.ts";
import { thisMachine } from "./machine.ts";
import { isChosen, type Options, parseOptions, USAGE } from "./options.ts";
import { Household } from "./processes/household.ts";
import { type Failure, type Report, reportedOptions, Skipped } from "./report.ts";
import { machineLine, summary, table } from "./table.ts";
import { Workshop } from "./workshop.ts";

async function measure(options: Options): Promise<Report> {
  const begun = performance.now();
  const started_at = new Date().toISOString();
  const machine = thisMachine();
  if (!options.json) console.log(`${machineLine(machine)}\n`);
  const household = new Household();
  const figures: Figure[] = [];
  const notes: string[] = [];
  const failures: Failure[] = [];
  const skipped: Failure[] = [];
  for (const area of options.areas) {
    const cores = ON_SEPARATE_CORES.has(area) ? machine.separate_cores : null;
    const workshop = new Workshop(household, { ...options, cores });
    for (const [scenario, run] of Object.entries(AREAS[area] ?? {})) {
      if (!isChosen(scenario, options)) continue;
      console.error(`measuring ${area}: ${scenario}`);
      try {
        figures.push(...(await run(workshop)));
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        const isSkipped = error instanceof Skipped;
        console.error(`${isSkipped ? "skipped" : "BROKEN"}: ${message}`);
        (isSkipped ? skipped : failures).push({ area, scenario, message });
      }
    }
    notes.push(...workshop.notes);
    await workshop.close();
  }
  const took_seconds = Math.round((performance.now() - begun) / 1000);
  return {
    format: "gatehouse-bench/1",
    started_at,
    took_seconds,
    machine,
    options: reportedOptions(options),
    figures,
    notes,
    failures,
    skipped,
  };
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(USAGE);
    return 0;
  }
  const options = parseOptions(args);
  if (typeof options === "string") {
    console.error(`${options}\n\n${USAGE}`);
    return 2;
  }
  const report = await measure(options);
  if (options.json) console.log(JSON.stringify(report, null, 2));
  else console.log(`\n${table(report.figures)}\n\n${summary(report)}`);
  return report.failures.length === 0 ? 0 : 1;
}

process.exit(await main(process.argv.slice(2)));

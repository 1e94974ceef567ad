import type { Workshop } from "../workshop.ts";
import { STEP_MS } from "./entries.ts";
import { fillResult } from "./jobs.ts";

/** The aims apply from this many entries on. */
export const AIMED = 1_000_000;

/** A data directory whose workspace `default` has many entries. Requests to it add more. */
export interface FilledLedger {
  readonly dataDir: string;
  readonly size: number;
  /** When an entry was written, in milliseconds. Entries count from 0. */
  timeOf(index: number): number;
}

/** The large ledger, filled once per run. */
export async function filledLedger(workshop: Workshop): Promise<FilledLedger> {
  if (workshop.filledLedger) return workshop.filledLedger;
  const [dataDir, size] = [workshop.folder(), workshop.entries];
  const worker = workshop.worker("ledger/worker.ts");
  const { seconds, startedAt } = await worker.ask({ kind: "fill", dataDir, entries: size }, fillResult);
  await worker.end();
  console.error(`  ${size} entries were written in ${seconds.toFixed(1)} s`);
  workshop.filledLedger = { dataDir, size, timeOf: (index) => startedAt + index * STEP_MS };
  return workshop.filledLedger;
}

/** `1,000,000 entries` */
export function sizeText({ size }: FilledLedger): string {
  return `${size.toLocaleString("en-US")} entries`;
}

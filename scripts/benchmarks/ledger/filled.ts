import type { Workshop } from "../workshop.ts";
import { STEP_MS } from "./entries.ts";
import { fillResult } from "./jobs.ts";

/** The aims are for so many entries, or more. */
export const AIMED = 1_000_000;

/** A data directory whose workspace `default` has many entries; what is asked of it adds to them. */
export interface FilledLedger {
  readonly dataDir: string;
  readonly size: number;
  /** When an entry was written, from 0 on, in milliseconds. */
  timeOf(index: number): number;
}

/** The large ledger, which is filled once a run. */
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

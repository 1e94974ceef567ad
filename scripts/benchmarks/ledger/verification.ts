import { type Aim, alone, type Figure } from "../figures.ts";
import type { Workshop } from "../workshop.ts";
import { AIMED, filledLedger, sizeText } from "./filled.ts";

const LONGEST: Aim = { of: "gatehouse", relation: "<", value: 15_000 };
/** Each round takes seconds, and more rounds would add no information. */
const MOST_ROUNDS = 3;
const BYTES_PER_MB = 1_000_000;

/** `gatehouse ledger verify` on the data directory, in a separate process and without a server. */
export async function verification(workshop: Workshop): Promise<Figure[]> {
  const ledger = await filledLedger(workshop);
  // A server has to sign the head of the filled ledger; otherwise verification could not decide anything.
  await (await workshop.gatehouse({ dataDir: ledger.dataDir })).stop();
  const times: number[] = [];
  const peaks: number[] = [];
  for (let round = 0; round < Math.min(workshop.rounds, MOST_ROUNDS); round++) {
    const { code, output, ms, mostBytes } = await workshop.verb("ledger", "verify", "--data", ledger.dataDir);
    if (code !== 0) throw new Error(`ledger verification failed (exit code ${code}): ${output}`);
    times.push(ms);
    peaks.push(mostBytes / BYTES_PER_MB);
  }
  const aim = ledger.size >= AIMED ? LONGEST : undefined;
  return [
    alone({ id: "ledger.verify", label: `ledger verify, ${sizeText(ledger)}`, unit: "ms" }, times, aim),
    alone({ id: "ledger.verify.memory", label: "  peak resident memory", unit: "MB" }, peaks),
  ];
}

import { type Aim, alone, type Figure } from "../figures.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { residentBytes } from "../processes/usage.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { type FilledLedger, filledLedger, sizeText } from "./filled.ts";

const FORMATS = ["ndjson", "csv", "article14"] as const;
const RATE: Aim = { of: "gatehouse", relation: ">=", value: 50_000 };
/** Each round takes seconds, and more rounds would add no information. */
const MOST_ROUNDS = 3;
const IDLE_MS = 2_000;
const SAMPLE_MS = 20;
const BYTES_PER_MB = 1_000_000;
const PART = 10;
const NEWLINE = 10;

interface Export {
  readonly perSecond: number;
  /** Peak resident memory minus that before the first export, in MB. */
  readonly grown: number | null;
}

/**
 * Exports the whole ledger in each format to one reader, and compares the memory with that for a tenth of the ledger.
 */
export async function exports(workshop: Workshop): Promise<Figure[]> {
  const ledger = await filledLedger(workshop);
  const figures: Figure[] = [];
  for (const format of FORMATS) {
    // A tenth and the whole are each measured in a new process, because a process is slow to return memory.
    const [part] = await measured(workshop, ledger, format, 1, PART);
    const whole = await measured(workshop, ledger, format, Math.min(workshop.rounds, MOST_ROUNDS), 1);
    const id = `ledger.export.${format}`;
    const label = `export of ${sizeText(ledger)}, ${format}`;
    figures.push(
      alone(
        { id, label, unit: "1/s" },
        whole.map(({ perSecond }) => perSecond),
        RATE,
      ),
      alone(
        { id: `${id}.memory`, label: "  peak memory above idle", unit: "MB" },
        whole.map(({ grown }) => grown),
      ),
      alone({ id: `${id}.memory_part`, label: "  with a tenth of the entries", unit: "MB" }, [
        part?.grown ?? null,
      ]),
    );
  }
  return figures;
}

async function measured(
  workshop: Workshop,
  { dataDir, size, timeOf }: FilledLedger,
  format: string,
  rounds: number,
  part: number,
): Promise<Export[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings(), dataDir });
  try {
    await Bun.sleep(IDLE_MS);
    const idle = residentBytes(gatehouse.pid);
    const entries = Math.floor(size / part);
    const until = part === 1 ? "" : `&to=${new Date(timeOf(entries)).toISOString()}`;
    const results: Export[] = [];
    for (let round = 0; round < rounds; round++) {
      results.push(await download(gatehouse, `/v1/ledger?format=${format}${until}`, format, entries, idle));
    }
    return results;
  } finally {
    await gatehouse.stop();
  }
}

/** @throws Error if the answer is not the requested one or is incomplete */
async function download(
  { port, admin, pid }: Gatehouse,
  path: string,
  format: string,
  entries: number,
  idle: number | null,
): Promise<Export> {
  let most: number | null = null;
  const look = () => {
    const now = residentBytes(pid);
    if (now !== null) most = Math.max(most ?? 0, now);
  };
  const timer = setInterval(look, SAMPLE_MS);
  const begun = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { authorization: `Bearer ${admin}` },
  });
  if (!response.ok || !response.body) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  let lines = 0;
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (format !== "article14") lines += newlines(chunk);
  }
  const seconds = (performance.now() - begun) / 1_000;
  clearInterval(timer);
  look();
  // Entries of one transaction share a timestamp, so a partial export ends only near the requested entry.
  if (format === "article14" ? bytes < entries : lines < entries * 0.9) {
    throw new Error(`${path}: ${lines} lines, ${bytes} bytes for ${entries} entries`);
  }
  return {
    perSecond: entries / seconds,
    grown: most === null || idle === null ? null : (most - idle) / BYTES_PER_MB,
  };
}

function newlines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

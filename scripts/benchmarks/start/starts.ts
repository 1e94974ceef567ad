import { existsSync } from "node:fs";
import { join } from "node:path";
import { compared, type Figure } from "../figures.ts";
import { BINARY } from "../processes/gatehouse.ts";
import { Skipped } from "../report.ts";
import { alternate } from "../rounds.ts";
import type { Workshop } from "../workshop.ts";
import type { Launch, Memory } from "./launch.ts";

const BARE = join(import.meta.dir, "..", "servers", "bare-start.ts");
const STARTS_PER_ROUND = 4;
const IDLE_MS = 5_000;
const BYTES_PER_MB = 1_000_000;
const READY = { of: "gatehouse", relation: "<", value: 120 } as const;
const IDLE = { of: "gatehouse", relation: "<", value: 120 } as const;

/** What a start costs until the program is ready. */
type Start = Pick<Launch, "readyMs" | "cpuMs">;

/**
 * The time from the start of the compiled program to its first 200 on `/readyz`, beside a bare program that was
 * compiled in the same way. By then Gatehouse has written to its store and synced.
 */
export async function starts(workshop: Workshop): Promise<Figure[]> {
  const { bare, gatehouse } = await programs(workshop);
  const existing = workshop.folder();
  const rounds = await alternate(
    {
      bare: () => startOf(bare),
      empty: () => startInEmpty(workshop, gatehouse),
      existing: () => startOf(() => gatehouse(existing)),
    },
    STARTS_PER_ROUND * workshop.rounds,
  );
  const pairs = (of: "empty" | "existing", what: keyof Start) =>
    rounds.map((round) => ({ baseline: round.bare[what], gatehouse: round[of][what] }));
  return (["empty", "existing"] as const).flatMap((directory) => [
    compared(
      { id: `start.${directory}.ready`, label: `ready, in an ${directory} directory`, unit: "ms" },
      pairs(directory, "readyMs"),
      READY,
    ),
    compared(
      { id: `start.${directory}.cpu`, label: "  CPU of all threads until then", unit: "ms" },
      pairs(directory, "cpuMs"),
    ),
  ]);
}

async function startInEmpty(workshop: Workshop, gatehouse: Programs["gatehouse"]): Promise<Start> {
  const dataDir = workshop.folder();
  const start = await startOf(() => gatehouse(dataDir));
  workshop.remove(dataDir);
  return start;
}

async function startOf(open: () => Promise<Launch>): Promise<Start> {
  const { readyMs, cpuMs, stop } = await open();
  await stop();
  return { readyMs, cpuMs };
}

/** What the compiled program occupies when nothing calls it. */
export async function idleMemory(workshop: Workshop): Promise<Figure[]> {
  const { bare, gatehouse } = await programs(workshop);
  const rounds: { readonly baseline: Memory; readonly gatehouse: Memory }[] = [];
  while (rounds.length < workshop.rounds) {
    const launched = [await bare(), await gatehouse(workshop.folder())] as const;
    await Bun.sleep(IDLE_MS);
    const [baseline, own] = [launched[0].memory(), launched[1].memory()];
    rounds.push({ baseline, gatehouse: own });
    for (const { stop } of launched) await stop();
  }
  const pairs = (what: keyof Memory) =>
    rounds.map(({ baseline, gatehouse: own }) => ({
      baseline: megabytes(baseline[what]),
      gatehouse: megabytes(own[what]),
    }));
  return [
    compared(
      { id: "start.idle.resident", label: `resident memory, ${IDLE_MS / 1_000} s after a start`, unit: "MB" },
      pairs("resident"),
      IDLE,
    ),
    compared(
      {
        id: "start.idle.proportional",
        label: "  with a share of what several processes use (PSS)",
        unit: "MB",
      },
      pairs("proportional"),
    ),
  ];
}

interface Programs {
  bare(): Promise<Launch>;
  gatehouse(dataDir: string): Promise<Launch>;
}

/** @throws Skipped if Gatehouse has not been compiled */
async function programs(workshop: Workshop): Promise<Programs> {
  if (!existsSync(BINARY)) throw new Skipped("there is no dist/gatehouse yet: run scripts/build");
  const folder = workshop.folder();
  const bare = await compileBare(folder);
  return {
    bare: () => workshop.launch(folder, (port) => [bare, String(port)]),
    gatehouse: (dataDir) =>
      workshop.launch(dataDir, (port) => [
        BINARY,
        "serve",
        "--data",
        dataDir,
        "--listen",
        `127.0.0.1:${port}`,
      ]),
  };
}

/** As `scripts/build` compiles Gatehouse. @returns the path of the program */
async function compileBare(folder: string): Promise<string> {
  const path = join(folder, "bare");
  const options = ["--compile", "--bytecode", "--format=esm", "--minify-whitespace", "--minify-syntax"];
  const child = Bun.spawn([process.execPath, "build", BARE, ...options, `--outfile=${path}`], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const errors = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`the bare program could not be compiled: ${errors.trim()}`);
  return path;
}

function megabytes(bytes: number | null): number | null {
  return bytes === null ? null : bytes / BYTES_PER_MB;
}

import { compared, type Figure } from "../figures.ts";
import { residentBytes } from "../processes/usage.ts";
import { alternate } from "../rounds.ts";
import type { Target, Workshop } from "../workshop.ts";

const STARTS = 10;
const IDLE_MS = 2_000;
const BYTES_PER_MB = 1_000_000;
const READY = { of: "gatehouse", relation: "<", value: 150 } as const;
const IDLE = { of: "gatehouse", relation: "<", value: 120 } as const;

interface Server extends Target {
  stop(): Promise<void>;
}

/**
 * Time from the start of the process to its first 200 on `/readyz`. By then Gatehouse has written to its store and
 * synced.
 */
export async function start(workshop: Workshop): Promise<Figure[]> {
  const dataDir = workshop.folder();
  const first = await alternate(
    {
      baseline: () => timeToReady(() => workshop.bare({}, true)),
      gatehouse: () => timeToReady(() => workshop.gatehouse({}, true)),
    },
    STARTS,
  );
  const again = await alternate(
    {
      baseline: () => timeToReady(() => workshop.bare({}, true)),
      gatehouse: () => timeToReady(() => workshop.gatehouse({ dataDir }, true)),
    },
    STARTS,
  );
  const idle = await alternate(
    {
      baseline: () => idleSize(() => workshop.bare({}, true)),
      gatehouse: () => idleSize(() => workshop.gatehouse({}, true)),
    },
    1,
  );
  return [
    compared({ id: "api.start.first", label: "ready, very first start", unit: "ms" }, first, READY),
    compared({ id: "api.start.again", label: "ready, a later start", unit: "ms" }, again, READY),
    compared({ id: "api.start.idle", label: "resident memory, 2 s after the start", unit: "MB" }, idle, IDLE),
  ];
}

async function timeToReady(open: () => Promise<Server>): Promise<number> {
  const begun = performance.now();
  const server = await open();
  const response = await fetch(`http://127.0.0.1:${server.port}/readyz`);
  const took = performance.now() - begun;
  if (response.status !== 200) throw new Error(`/readyz answered ${response.status}`);
  await server.stop();
  return took;
}

async function idleSize(open: () => Promise<Server>): Promise<number | null> {
  const server = await open();
  await Bun.sleep(IDLE_MS);
  const bytes = residentBytes(server.pid);
  await server.stop();
  return bytes === null ? null : bytes / BYTES_PER_MB;
}

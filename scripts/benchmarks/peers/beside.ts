import { compared, type Figure } from "../figures.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { installed, pinnedPackages } from "../processes/install.ts";
import { Skipped } from "../report.ts";
import { alternate } from "../rounds.ts";
import { CALLERS, TOGETHER, taskRun } from "../run/task-run.ts";
import { createAgent, PROMPT, settings } from "../setup.ts";
import type { Pair } from "../statistics.ts";
import type { HelperServer, Round, Workshop } from "../workshop.ts";
import { MemoryWatch } from "./memory.ts";
import { describe, type PeerServer, type Product } from "./product.ts";

const SETTLE_MS = 2_000;
/** The time within which memory should be released. */
const AFTER_MS = 30_000;

interface Contenders {
  readonly workshop: Workshop;
  readonly product: Product;
  readonly upstream: HelperServer;
  readonly peer: PeerServer;
  readonly gatehouse: Gatehouse;
}

/** The same run in Gatehouse and in another product: rate, time alone, first tokens of a crowd, and memory. */
export function beside(product: Product): (workshop: Workshop) => Promise<Figure[]> {
  return (workshop) =>
    withBoth(workshop, product, async (contenders) => {
      const id = `peers.${product.id}`;
      const memory = watchMemory(contenders);
      await Bun.sleep(SETTLE_MS);
      const idle = memory.now();
      const figures = [
        ...(await rate(contenders, id)),
        ...(await alone(contenders, id)),
        ...(await together(contenders, id)),
      ];
      const peak = memory.end();
      await Bun.sleep(AFTER_MS);
      const mb = (what: string, label: string, pair: Pair<number | null>) =>
        compared({ id: `${id}.memory.${what}`, label, unit: "MB" }, [pair]);
      return [
        ...figures,
        mb("idle", "  resident before any run", idle),
        mb("peak", "  at most, during all of these", peak),
        mb("after", "  30 s after the last", memory.now()),
      ];
    });
}

/** Only the rates of a product beside Gatehouse's, as a part of another area. */
export function ratesBeside(product: Product, area: string): (workshop: Workshop) => Promise<Figure[]> {
  return (workshop) => withBoth(workshop, product, (contenders) => rate(contenders, `${area}.${product.id}`));
}

/** @throws Skipped if the product may not or cannot be installed */
async function withBoth(
  workshop: Workshop,
  product: Product,
  measure: (contenders: Contenders) => Promise<Figure[]>,
): Promise<Figure[]> {
  if (!workshop.peers) throw new Skipped("give --peers to install it and measure it");
  for (const name of pinnedPackages(product.folder)) {
    const missing = await installed(product.folder, name);
    if (missing !== null) throw new Skipped(missing);
  }
  const upstream = await workshop.upstream();
  const peer = await product.start(workshop, upstream.port);
  try {
    const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
    await createAgent(gatehouse);
    const figures = await measure({ workshop, product, upstream, peer, gatehouse });
    await gatehouse.stop();
    return figures;
  } finally {
    // After a failure too: some products keep a core busy, which would disturb the next one.
    await peer.stop();
    await upstream.stop();
  }
}

function rounds(
  { workshop, product, upstream, peer, gatehouse }: Contenders,
  job: { readonly connections: number; readonly paceMs?: number },
  seconds = workshop.seconds,
): Promise<Pair<Round>[]> {
  const shared = { spreadMs: 0, ...job };
  return alternate<"baseline" | "gatehouse", Round>(
    {
      baseline: () => workshop.load(peer, { ...shared, ...product.run(upstream.port, PROMPT) }, seconds),
      gatehouse: () => workshop.load(gatehouse, { ...shared, ...taskRun(gatehouse) }, seconds),
    },
    workshop.rounds,
  );
}

async function rate(contenders: Contenders, id: string): Promise<Figure[]> {
  const { product } = contenders;
  const measured = await rounds(contenders, { connections: CALLERS });
  const aim = product.leastRate;
  return [
    compared(
      { id: `${id}.rate`, label: `${describe(product)}: runs by ${CALLERS} callers`, unit: "1/s" },
      pairs(measured, ({ perSecond }) => perSecond),
      aim === undefined ? undefined : { of: "ratio", relation: ">=", value: aim },
    ),
    compared(
      { id: `${id}.cpu`, label: "  server CPU per run", unit: "µs" },
      pairs(measured, ({ cpuMicros }) => cpuMicros),
    ),
  ];
}

async function alone(contenders: Contenders, id: string): Promise<Figure[]> {
  const measured = await rounds(contenders, { connections: 1 });
  return [
    compared(
      { id: `${id}.alone.p50`, label: "  one run alone p50", unit: "ms" },
      pairs(measured, ({ p50 }) => p50),
    ),
  ];
}

/** @throws Error if a run is not over when the next sixty start, because these would not start together then */
async function together(contenders: Contenders, id: string): Promise<Figure[]> {
  const { workshop, product } = contenders;
  const paceMs = product.everyMs;
  const job = { connections: TOGETHER, paceMs };
  const measured = await rounds(contenders, job, Math.max(workshop.seconds, paceMs / 1_000));
  for (const { p99 } of measured.flatMap((pair) => [pair.baseline, pair.gatehouse])) {
    if (p99 === null || p99 >= paceMs) throw new Error(`${TOGETHER} runs took longer than ${paceMs} ms`);
  }
  return [
    compared(
      {
        id: `${id}.together.first50`,
        label: `  ${TOGETHER} that start together: first token p50`,
        unit: "ms",
      },
      pairs(measured, ({ first50 }) => first50),
    ),
    compared(
      { id: `${id}.together.first99`, label: "    p99", unit: "ms" },
      pairs(measured, ({ first99 }) => first99),
    ),
  ];
}

function watchMemory({ peer, gatehouse }: Contenders) {
  const watches = { baseline: new MemoryWatch(peer), gatehouse: new MemoryWatch(gatehouse) };
  const both = (of: (watch: MemoryWatch) => number | null): Pair<number | null> => ({
    baseline: of(watches.baseline),
    gatehouse: of(watches.gatehouse),
  });
  return { now: () => both((watch) => watch.now()), end: () => both((watch) => watch.end()) };
}

function pairs(measured: readonly Pair<Round>[], of: (round: Round) => number | null): Pair<number | null>[] {
  return measured.map(({ baseline, gatehouse }) => ({ baseline: of(baseline), gatehouse: of(gatehouse) }));
}

import { join } from "node:path";
import { loadFigures } from "../api/load-figures.ts";
import { compared, type Figure } from "../figures.ts";
import type { ExchangesJob } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { chunk, SHORT_CHUNKS } from "../servers/script.ts";
import { createAgent, settings, upstreamRequest } from "../setup.ts";
import { combine, type Pair } from "../statistics.ts";
import type { Round, Target, Workshop } from "../workshop.ts";
import { CALLERS, TOGETHER, taskRun } from "./task-run.ts";

/** How often the runs that start together do so. */
const EVERY_MS = 1_000;
/** Runs a second that begin whether or not earlier ones have ended, well below what the server can do. */
const STEADY_PER_SECOND = 200;
const STEADY_PACE_MS = 250;
const OPEN_LOOP = {
  connections: (STEADY_PER_SECOND * STEADY_PACE_MS) / 1_000,
  paceMs: STEADY_PACE_MS,
  spreadMs: STEADY_PACE_MS,
  countsFromDue: true,
} as const;
const LONGEST_ADDED = { of: "gatehouse", relation: "<", value: 1.5 } as const;
const FIRST50 = { of: "gatehouse", relation: "<", value: 10 } as const;
const FIRST99 = { of: "gatehouse", relation: "<", value: 20 } as const;

/**
 * Whole task runs with a short answer, streamed to their caller: compared with the same stream through a proxy that
 * keeps a hash-chained ledger, and with the upstream itself.
 */
export async function runs(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const proxy = await workshop.proxy({
    upstream: upstream.port,
    ledger: join(workshop.folder(), "ledger.db"),
  });
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await createAgent(gatehouse);
  const beside = (baseline: Target, job: Pick<ExchangesJob, "connections"> & Partial<ExchangesJob>) =>
    alternate<"baseline" | "gatehouse", Round>(
      {
        baseline: () =>
          workshop.load(baseline, {
            spreadMs: 0,
            ...job,
            request: requestText("POST", "/v1/chat/completions", { body: upstreamRequest("short") }),
            expect: { status: 200, first: chunk(0), texts: [chunk(SHORT_CHUNKS - 1)] },
          }),
        gatehouse: () => workshop.load(gatehouse, { spreadMs: 0, ...job, ...taskRun(gatehouse) }),
      },
      workshop.rounds,
    );
  const figures = [
    ...loadFigures(
      "run.ledgered",
      `runs by ${CALLERS} callers, compared with a proxy with a ledger`,
      await beside(proxy, { connections: CALLERS }),
    ),
    ...alone(await beside(upstream, { connections: 1 })),
    ...together(await beside(proxy, { connections: TOGETHER, paceMs: EVERY_MS })),
    ...steady(await beside(proxy, OPEN_LOOP)),
  ];
  await gatehouse.stop();
  await proxy.stop();
  await upstream.stop();
  return figures;
}

function alone(rounds: readonly Pair<Round>[]): Figure[] {
  const times = pairsOf(rounds, ({ p50 }) => p50);
  const added = times.map((pair) => ({
    baseline: 0,
    gatehouse: combine(pair, (upstream, run) => run - upstream),
  }));
  return [
    compared({ id: "run.alone.p50", label: "one run alone (the upstream's own) p50", unit: "ms" }, times),
    compared({ id: "run.alone.added", label: "  added, p50", unit: "ms" }, added, LONGEST_ADDED),
  ];
}

function together(rounds: readonly Pair<Round>[]): Figure[] {
  return [
    compared(
      {
        id: "run.together.first50",
        label: `${TOGETHER} runs that start together: first token p50`,
        unit: "ms",
      },
      pairsOf(rounds, ({ first50 }) => first50),
      FIRST50,
    ),
    compared(
      { id: "run.together.first99", label: "  first token p99", unit: "ms" },
      pairsOf(rounds, ({ first99 }) => first99),
      FIRST99,
    ),
  ];
}

function steady(rounds: readonly Pair<Round>[]): Figure[] {
  return [
    compared(
      { id: "run.steady.p50", label: `${STEADY_PER_SECOND} runs begun a second: p50`, unit: "ms" },
      pairsOf(rounds, ({ p50 }) => p50),
    ),
    compared(
      { id: "run.steady.p99", label: "  p99", unit: "ms" },
      pairsOf(rounds, ({ p99 }) => p99),
    ),
    compared(
      { id: "run.steady.first50", label: "  first token p50", unit: "ms" },
      pairsOf(rounds, ({ first50 }) => first50),
    ),
  ];
}

function pairsOf(rounds: readonly Pair<Round>[], of: (round: Round) => number | null): Pair<number | null>[] {
  return rounds.map(({ baseline, gatehouse }) => ({ baseline: of(baseline), gatehouse: of(gatehouse) }));
}

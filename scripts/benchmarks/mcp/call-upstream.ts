import { alone, compared, type Figure } from "../figures.ts";
import { alternate } from "../rounds.ts";
import { directResult } from "../servers/config.ts";
import { ANSWER, CALLED } from "../servers/upstream-tools.ts";
import { settings } from "../setup.ts";
import { combine, type Pair } from "../statistics.ts";
import type { Round, Workshop } from "../workshop.ts";
import { callsIn, openSessions } from "./client.ts";
import { connectUpstream, outwardName } from "./connector.ts";
import { CONNECTIONS } from "./load-figures.ts";

type Timing = Pick<Round, "perSecond" | "p50" | "p99" | "cpuMicros">;

/**
 * A call to a tool whose upstream, over stdio, answers at once: directly with the SDK's client, and through
 * Gatehouse. With one call at a time, the difference is everything that a call passes through: HTTP, the gate and two
 * entries on disk.
 */
export async function callUpstream(workshop: Workshop): Promise<Figure[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings() });
  await connectUpstream(gatehouse);
  const server = { port: gatehouse.port, token: gatehouse.admin };
  const call = { method: "tools/call", params: { ...CALLED, name: outwardName(CALLED.name) } };
  const request = callsIn(server, await openSessions(server, CONNECTIONS), call);
  const direct = workshop.worker("servers/mcp-client.ts", "server");

  const figures: Figure[] = [];
  for (const concurrency of [1, CONNECTIONS]) {
    const job = { request, connections: concurrency, spreadMs: 0, expect: { status: 200, texts: [ANSWER] } };
    const rounds = await alternate<"baseline" | "gatehouse", Timing>(
      {
        async baseline() {
          const timing = await direct.ask({ concurrency, seconds: workshop.seconds }, directResult);
          return { ...timing, cpuMicros: null };
        },
        gatehouse: () => workshop.load(gatehouse, job),
      },
      workshop.rounds,
    );
    figures.push(...figuresOf(concurrency, rounds));
  }
  await direct.end();
  await gatehouse.stop();
  return figures;
}

function figuresOf(concurrency: number, rounds: readonly Pair<Timing>[]): Figure[] {
  const pairs = (of: (timing: Timing) => number | null): Pair<number | null>[] =>
    rounds.map(({ baseline, gatehouse }) => ({ baseline: of(baseline), gatehouse: of(gatehouse) }));
  const id = concurrency === 1 ? "mcp.upstream_1" : "mcp.upstream";
  const p50 = pairs((timing) => timing.p50);
  const added = p50.map((pair) => combine(pair, (baseline, through) => through - baseline));
  return [
    compared(
      { id: `${id}.rate`, label: `an upstream's tool, ${concurrency} at once`, unit: "1/s" },
      pairs((timing) => timing.perSecond),
    ),
    compared({ id: `${id}.p50`, label: "  latency p50", unit: "ms" }, p50),
    compared(
      { id: `${id}.p99`, label: "  latency p99", unit: "ms" },
      pairs((timing) => timing.p99),
    ),
    alone({ id: `${id}.added`, label: "  added to a call, p50", unit: "ms" }, added),
    alone(
      { id: `${id}.cpu`, label: "  Gatehouse's CPU each", unit: "µs" },
      rounds.map(({ gatehouse }) => gatehouse.cpuMicros),
    ),
  ];
}

import { alone, compared, type Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { CHUNKS, chunk, chunks, PACE_MS } from "../servers/script.ts";
import { createAgent, settings, TIER, taskRequest, upstreamRequest } from "../setup.ts";
import { combine, type Pair } from "../statistics.ts";
import type { Round, Workshop } from "../workshop.ts";

const READERS = 32;
const ADDED = { of: "gatehouse", relation: "<", value: 2 } as const;

interface Case {
  readonly id: string;
  readonly label: string;
  readonly model: "plain" | "paced";
  readonly readers: number;
}

/**
 * With 32 readers and chunks sent all at once, both servers are as busy as they can be. A first token then waits for
 * the work on 31 other streams, and the difference is that work. One reader, or paced chunks, shows the delay of a
 * stream itself.
 */
const CASES: readonly Case[] = [
  { id: "stream.relay", label: "32 readers, 50 chunks at once", model: "plain", readers: READERS },
  { id: "stream.paced", label: "32 readers, 50 chunks 5 ms apart", model: "paced", readers: READERS },
  { id: "stream.single", label: "1 reader, 50 chunks at once", model: "plain", readers: 1 },
];

/** A model's stream, read from the upstream directly and as a task through Gatehouse. */
export async function relay(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await createAgent(gatehouse);
  const figures: Figure[] = [];
  for (const one of CASES) {
    const job = {
      connections: one.readers,
      // All of them start within the duration of one stream.
      spreadMs: one.model === "paced" ? CHUNKS * PACE_MS : 0,
    };
    const rounds = await alternate(
      {
        baseline: () =>
          workshop.load(upstream, {
            ...job,
            request: requestText("POST", "/v1/chat/completions", { body: upstreamRequest(one.model) }),
            expect: { status: 200, first: chunk(0), texts: [chunk(CHUNKS - 1), "data: [DONE]"] },
          }),
        gatehouse: () =>
          workshop.load(gatehouse, {
            ...job,
            request: requestText("POST", "/v1/tasks?stream=true", {
              token: gatehouse.admin,
              body: taskRequest(TIER[one.model]),
            }),
            expect: {
              status: 200,
              first: chunk(0),
              texts: [`"status":"succeeded","output":"${chunks(CHUNKS).join("")}"`],
            },
          }),
      },
      workshop.rounds,
    );
    figures.push(...figuresOf(one, rounds));
  }
  await gatehouse.stop();
  await upstream.stop();
  return figures;
}

function figuresOf({ id, label }: Case, rounds: readonly Pair<Round>[]): Figure[] {
  const pairs = (of: (round: Round) => number | null): Pair<number | null>[] =>
    rounds.map(({ baseline, gatehouse }) => ({ baseline: of(baseline), gatehouse: of(gatehouse) }));
  const first50 = pairs((round) => round.first50);
  const first99 = pairs((round) => round.first99);
  const added = first50.map((pair) => combine(pair, (baseline, through) => through - baseline));
  return [
    compared(
      { id: `${id}.rate`, label, unit: "1/s" },
      pairs((round) => round.perSecond),
    ),
    compared({ id: `${id}.first50`, label: "  first token p50", unit: "ms" }, first50),
    compared({ id: `${id}.first99`, label: "  first token p99", unit: "ms" }, first99),
    alone({ id: `${id}.added`, label: "  added to the first token", unit: "ms" }, added, ADDED),
    compared(
      { id: `${id}.cpu`, label: "  server CPU per operation (upstream's own)", unit: "µs" },
      pairs((round) => round.cpuMicros),
    ),
  ];
}

import { compared, type Figure } from "../figures.ts";
import { readersResult } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import { cpuMicros } from "../processes/usage.ts";
import { alternate } from "../rounds.ts";
import { BURST_CHUNKS, BURST_WAIT_MS, chunk, chunks } from "../servers/script.ts";
import { createAgent, dispatch, settings, TIER } from "../setup.ts";
import type { Pair } from "../statistics.ts";
import type { Target, Workshop } from "../workshop.ts";

const READERS = 32;
const TEXT = chunks(BURST_CHUNKS).join("");

interface Delivery {
  readonly perSecond: number;
  readonly cpuMicros: number | null;
}

/**
 * One task read by many while it runs. The bare server only sends one frame per token to each reader. Gatehouse
 * combines tokens that arrive in the same turn, so the unit is tokens.
 */
export async function fanOut(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await createAgent(gatehouse);
  const frames = Array.from(
    { length: BURST_CHUNKS },
    (_, index) => `id: ${index + 1}\nevent: output.delta\ndata: {"text":"${chunk(index)}"}\n\n`,
  );
  const bare = await workshop.bare({ frames, waitMs: BURST_WAIT_MS });
  const rounds = await alternate(
    {
      baseline: () =>
        deliver(workshop, bare, {
          request: requestText("GET", "/events"),
          text: chunk(BURST_CHUNKS - 1),
        }),
      async gatehouse() {
        const { id } = await dispatch(gatehouse, TIER.burst);
        return deliver(workshop, gatehouse, {
          request: requestText("GET", `/v1/tasks/${id}/events`, { token: gatehouse.admin }),
          text: `"status":"succeeded","output":"${TEXT}"`,
        });
      },
    },
    workshop.rounds,
  );
  await Promise.all([gatehouse.stop(), bare.stop()]);
  await upstream.stop();

  const pairs = (of: (delivery: Delivery) => number | null): Pair<number | null>[] =>
    rounds.map((round) => ({ baseline: of(round.baseline), gatehouse: of(round.gatehouse) }));
  return [
    compared(
      { id: "stream.fan_out.rate", label: "tokens of one task to 32 readers", unit: "1/s" },
      pairs((delivery) => delivery.perSecond),
    ),
    compared(
      { id: "stream.fan_out.cpu", label: "  server CPU per operation", unit: "µs" },
      pairs((delivery) => delivery.cpuMicros),
    ),
  ];
}

/** @throws Error if the readers did not all get the same bytes from beginning to end */
async function deliver(
  { generator }: Workshop,
  { pid, port }: Target,
  { request, text }: { readonly request: string; readonly text: string },
): Promise<Delivery> {
  const before = cpuMicros(pid);
  const job = { kind: "readers", port, request, readers: READERS, first: chunk(0), text };
  const read = await generator.ask(job, readersResult);
  const after = cpuMicros(pid);
  if (read.bodies !== 1)
    throw new Error(`${READERS} readers of one task got ${read.bodies} different streams`);
  const delivered = READERS * BURST_CHUNKS;
  return {
    perSecond: delivered / read.seconds,
    cpuMicros: before === null || after === null ? null : (after - before) / delivered,
  };
}

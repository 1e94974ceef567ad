import { compared, type Figure } from "../figures.ts";
import { holdResult } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import { residentBytes } from "../processes/usage.ts";
import { createAgent, dispatch, settings, TIER } from "../setup.ts";
import { combine } from "../statistics.ts";
import type { Target, Workshop } from "../workshop.ts";

const STREAMS = 1_000;
/** Time for memory to be released, if it is released at all. */
const SETTLE_MS = 3_000;
const BYTES_PER_MB = 1_000_000;
const OPEN = { of: "gatehouse", relation: "<", value: 150 } as const;

interface Sizes {
  readonly open: number | null;
  readonly closed: number | null;
}

/** A thousand open streams on which nothing happens: the events of a task whose model never answers. */
export async function quiet(workshop: Workshop): Promise<Figure[]> {
  const bare = await workshop.bare({});
  const baseline = await sizes(workshop, bare, requestText("GET", "/quiet"));
  await bare.stop();

  const upstream = await workshop.upstream();
  const server = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await createAgent(server);
  const { id } = await dispatch(server, TIER.hang);
  const request = requestText("GET", `/v1/tasks/${id}/events`, { token: server.admin });
  const gatehouse = await sizes(workshop, server, request);
  await server.stop();
  await upstream.stop();

  return [
    compared(
      { id: "stream.quiet.open", label: "1,000 quiet streams, resident above idle", unit: "MB" },
      [{ baseline: baseline.open, gatehouse: gatehouse.open }],
      OPEN,
    ),
    compared({ id: "stream.quiet.closed", label: "  after all were closed", unit: "MB" }, [
      { baseline: baseline.closed, gatehouse: gatehouse.closed },
    ]),
  ];
}

/** Megabytes above the server's earlier memory. */
async function sizes({ generator }: Workshop, { pid, port }: Target, request: string): Promise<Sizes> {
  await Bun.sleep(SETTLE_MS);
  const idle = residentBytes(pid);
  const above = (bytes: number | null) =>
    combine({ baseline: idle, gatehouse: bytes }, (before, now) => (now - before) / BYTES_PER_MB);

  await generator.ask({ kind: "hold", port, request, count: STREAMS }, holdResult);
  await Bun.sleep(SETTLE_MS);
  const open = above(residentBytes(pid));
  await generator.ask({ kind: "let-go" }, holdResult);
  await Bun.sleep(SETTLE_MS);
  return { open, closed: above(residentBytes(pid)) };
}

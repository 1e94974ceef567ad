import { alone, type Figure } from "../figures.ts";
import { holdResult } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { residentBytes } from "../processes/usage.ts";
import { Skipped } from "../report.ts";
import { createAgent, dispatch, settings, TIER } from "../setup.ts";
import type { Workshop } from "../workshop.ts";

/** As many as a node runs at once. */
const TASKS = 256;
const READERS = 1_000;
/** Tasks and readers of an earlier load, so that permanent costs of the first ones do not count. */
const WARM_UP = 16;
const LOOK_MS = 250;
/** The time within which memory should be released. */
const AFTER_MS = 30_000;
const BYTES_PER_MB = 1_000_000;
const PEAK = { of: "gatehouse", relation: "<", value: 400 } as const;
const AFTER = { of: "gatehouse", relation: "<", value: 1.2 } as const;

/** As many tasks as can run at once, all streaming, with readers that take next to nothing. */
export async function crowd(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await createAgent(gatehouse);
  await streamTo(workshop, gatehouse, WARM_UP, WARM_UP);
  const before = resident(gatehouse);
  const peak = await streamTo(workshop, gatehouse, TASKS, READERS);
  await Bun.sleep(AFTER_MS);
  const after = resident(gatehouse);
  await gatehouse.stop();
  await upstream.stop();
  const heading = { id: "stream.crowd.before", label: "resident before", unit: "MB" } as const;
  return [
    alone(heading, [before]),
    alone(
      { id: "stream.crowd.peak", label: `  at most, ${TASKS} tasks, 1,000 slow readers`, unit: "MB" },
      [peak],
      PEAK,
    ),
    alone({ id: "stream.crowd.after", label: "  30 s after the last has ended", unit: "MB" }, [after]),
    alone(
      { id: "stream.crowd.kept", label: "  after, divided by before", unit: "×" },
      [after / before],
      AFTER,
    ),
  ];
}

/** @returns the most megabytes resident, between the first dispatch and the end of the last task */
async function streamTo(
  { generator }: Workshop,
  gatehouse: Gatehouse,
  tasks: number,
  readers: number,
): Promise<number> {
  let peak = 0;
  const look = setInterval(() => {
    peak = Math.max(peak, resident(gatehouse));
  }, LOOK_MS);
  try {
    const ids = await Promise.all(
      Array.from({ length: tasks }, async () => (await dispatch(gatehouse, TIER.long)).id),
    );
    const request = ids.map((id) => requestText("GET", `/v1/tasks/${id}/events`, { token: gatehouse.admin }));
    const { port } = gatehouse;
    await generator.ask({ kind: "hold", port, request, count: readers, slowly: true }, holdResult);
    await Promise.all(ids.map((id) => ended(gatehouse, id)));
    await generator.ask({ kind: "let-go" }, holdResult);
  } finally {
    clearInterval(look);
  }
  return peak;
}

/**
 * Waits for a task to end with a reader that reads everything.
 * @throws Error if it did not succeed
 */
async function ended({ port, admin }: Gatehouse, id: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/tasks/${id}/events`, {
    headers: { authorization: `Bearer ${admin}` },
  });
  if (!(await response.text()).includes('"status":"succeeded"')) throw new Error(`${id} has not succeeded`);
}

function resident({ pid }: Gatehouse): number {
  const bytes = residentBytes(pid);
  if (bytes === null) throw new Skipped("this system does not report resident memory");
  return bytes / BYTES_PER_MB;
}

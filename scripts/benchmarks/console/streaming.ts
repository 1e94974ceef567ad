import { compared, type Figure } from "../figures.ts";
import { chunk, STEADY_CHUNKS } from "../servers/script.ts";
import { createAgent, dispatch, settings, TIER } from "../setup.ts";
import type { Pair } from "../statistics.ts";
import type { Workshop } from "../workshop.ts";
import { PLAIN, Visitor } from "./visitor.ts";

/** How long each stream is watched. The stream lasts at least twice as long. */
const WATCHED_MS = 4_000;

interface Frames {
  readonly median: number;
  readonly longest: number;
}

/** How evenly a page is drawn while a task's text grows by about 200 tokens a second. */
export async function streaming(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  await createAgent(gatehouse);
  const visitor = await Visitor.arrive(gatehouse);
  const pairs: Pair<Frames>[] = [];
  for (let round = 0; round <= workshop.rounds; round++) {
    await visitor.go(PLAIN);
    const baseline = await frames(visitor);
    const { id } = await dispatch(gatehouse, TIER.steady);
    await visitor.go(`/console/tasks/${id}`);
    await visitor.page.getByText(chunk(0).trim()).first().waitFor();
    const watched = await frames(visitor);
    // The whole text has arrived, without losses.
    await visitor.page
      .getByText(chunk(STEADY_CHUNKS - 1).trim())
      .first()
      .waitFor();
    // The first round warms up.
    if (round > 0) pairs.push({ baseline, gatehouse: watched });
  }
  await visitor.leave();
  await gatehouse.stop();
  await upstream.stop();
  const of = (name: keyof Frames) =>
    pairs.map(({ baseline, gatehouse: own }) => ({ baseline: baseline[name], gatehouse: own[name] }));
  return [
    compared(
      { id: "console.stream.frame", label: "200 tokens/s on a task's page: from frame to frame", unit: "ms" },
      of("median"),
    ),
    compared({ id: "console.stream.longest_frame", label: "  the longest", unit: "ms" }, of("longest")),
  ];
}

/** Measures the time between drawn frames for a few seconds, in milliseconds. */
function frames({ page }: Visitor): Promise<Frames> {
  return page.evaluate<Frames>(`new Promise((resolve) => {
    const gaps = [];
    const begun = performance.now();
    let last = begun;
    requestAnimationFrame(function next(now) {
      gaps.push(now - last);
      last = now;
      if (now - begun < ${WATCHED_MS}) return requestAnimationFrame(next);
      gaps.shift();
      gaps.sort((one, other) => one - other);
      resolve({ median: gaps[gaps.length >> 1], longest: gaps[gaps.length - 1] });
    });
  })`);
}

import type { Response } from "playwright-core";
import { alone, compared, type Figure } from "../figures.ts";
import { createAgent, settings } from "../setup.ts";
import { type Pair, Samples } from "../statistics.ts";
import type { Workshop } from "../workshop.ts";
import { PLAIN, Visitor } from "./visitor.ts";

/** Page loads in each round. */
const LOADS = 20;
const SIZE_AIM = { of: "gatehouse", relation: "<", value: 150 } as const;
const DRAWN_AIM = { of: "gatehouse", relation: "<", value: 500 } as const;
/** The page shows its heading and a figure from the server. */
const DRAWN = `(() => {
  const value = document.querySelector(".figure-value")?.textContent;
  return document.querySelector("h1") && value && value !== "–" ? performance.now() : 0;
})()`;

interface Load {
  readonly painted: number;
  readonly drawn: number;
}

/** The page that an operator opens first, signed in, with an empty browser cache and with a full one. */
export async function firstPage(workshop: Workshop): Promise<Figure[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings() });
  await createAgent(gatehouse);
  const visitor = await Visitor.arrive(gatehouse);
  const kilobytes = await weigh(visitor);
  const figures = [
    alone(
      { id: "console.first_page.size", label: "the first page, compressed, without REST", unit: "kB" },
      [kilobytes],
      SIZE_AIM,
    ),
  ];
  for (const cache of ["cold", "warm"] as const) figures.push(...(await time(workshop, visitor, cache)));
  await visitor.leave();
  await gatehouse.stop();
  return figures;
}

async function time(workshop: Workshop, visitor: Visitor, cache: "cold" | "warm"): Promise<Figure[]> {
  const painted: Pair<Samples>[] = [];
  const drawn: Samples[] = [];
  for (let round = 0; round <= workshop.rounds; round++) {
    const paint = { baseline: new Samples(LOADS), gatehouse: new Samples(LOADS) };
    const whole = new Samples(LOADS);
    for (let load = 0; load < LOADS; load++) {
      await visitor.go(PLAIN);
      paint.baseline.add(await visitor.firstPaint());
      if (cache === "cold") await visitor.forget();
      const shown = await open(visitor);
      paint.gatehouse.add(shown.painted);
      whole.add(shown.drawn);
    }
    // The first round warms up.
    if (round === 0) continue;
    painted.push(paint);
    drawn.push(whole);
  }
  const id = `console.first_page.${cache}`;
  return [50, 99].flatMap((percent) => [
    compared(
      {
        id: `${id}.painted.p${percent}`,
        label: `something is shown, cache ${cache}, p${percent}`,
        unit: "ms",
      },
      painted.map(({ baseline, gatehouse }) => ({
        baseline: baseline.percentile(percent),
        gatehouse: gatehouse.percentile(percent),
      })),
    ),
    alone(
      { id: `${id}.drawn.p${percent}`, label: "  heading and figures are", unit: "ms" },
      drawn.map((samples) => samples.percentile(percent)),
      DRAWN_AIM,
    ),
  ]);
}

async function open(visitor: Visitor): Promise<Load> {
  await visitor.go("/console");
  const drawn = await visitor.until(DRAWN);
  return { painted: await visitor.firstPaint(), drawn };
}

/** The bytes that a first visit transfers, including headers but without REST's answers, in units of 1,000 bytes. */
async function weigh(visitor: Visitor): Promise<number> {
  const answers: Response[] = [];
  const note = (response: Response) => {
    if (!new URL(response.url()).pathname.startsWith("/v1/")) answers.push(response);
  };
  await visitor.forget();
  visitor.page.on("response", note);
  await open(visitor);
  // The charts are loaded last.
  await visitor.page.waitForLoadState("load");
  visitor.page.off("response", note);
  let bytes = 0;
  for (const answer of answers) {
    await answer.finished();
    const { responseBodySize, responseHeadersSize } = await answer.request().sizes();
    bytes += responseBodySize + responseHeadersSize;
  }
  return bytes / 1_000;
}

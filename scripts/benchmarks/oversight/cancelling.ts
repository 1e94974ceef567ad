import { alone, type Figure } from "../figures.ts";
import { Samples } from "../statistics.ts";
import type { Workshop } from "../workshop.ts";
import { callingTool, Overseen } from "./overseen.ts";

/** Cancellations in each round. */
const CANCELS = 20;
const OTHERS = 200;
const AIM = { of: "gatehouse", relation: "<", value: 100 } as const;

interface Case {
  readonly id: string;
  readonly label: string;
  readonly task: object;
}

const TALKING: Case = {
  id: "oversight.cancel",
  label: "cancelling, until the model's connection is closed",
  task: {},
};
const CASES: readonly Case[] = [
  TALKING,
  {
    id: "oversight.cancel_http",
    label: "cancelling, until a tool's request is closed (MCP over HTTP)",
    task: callingTool("http"),
  },
  {
    id: "oversight.cancel_stdio",
    label: "cancelling, until a tool is notified (MCP over stdio)",
    task: callingTool("stdio"),
  },
];
const BUSY: Case = {
  ...TALKING,
  id: "oversight.cancel_busy",
  label: `cancelling with ${OTHERS} other tasks streaming`,
};

/** `POST /v1/tasks/:id/cancel`, measured from the request until the upstream notices. */
export async function cancelling(workshop: Workshop): Promise<Figure[]> {
  const overseen = await Overseen.start(workshop);
  const figures: Figure[] = [];
  for (const one of CASES) figures.push(...(await measure(workshop, overseen, one)));
  await overseen.keepBusy(OTHERS);
  figures.push(...(await measure(workshop, overseen, BUSY)));
  await overseen.stop();
  return figures;
}

async function measure(
  { rounds }: Workshop,
  overseen: Overseen,
  { id, label, task }: Case,
): Promise<Figure[]> {
  const p50: (number | null)[] = [];
  const p99: (number | null)[] = [];
  for (let round = 0; round <= rounds; round++) {
    const closed = new Samples(CANCELS);
    for (let n = 0; n < CANCELS; n++) {
      const [own = ""] = await overseen.underWay(1, task);
      closed.add((await overseen.press(`/v1/tasks/${own}/cancel`, 1)).closed);
    }
    // The first round warms up.
    if (round === 0) continue;
    p50.push(closed.percentile(50));
    p99.push(closed.percentile(99));
  }
  return [
    alone({ id: `${id}.p50`, label, unit: "ms" }, p50, AIM),
    alone({ id: `${id}.p99`, label: "  p99", unit: "ms" }, p99, AIM),
  ];
}

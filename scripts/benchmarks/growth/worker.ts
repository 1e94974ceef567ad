/** Fills data directories in a separate process, so that nothing else is in its memory. */

import { answerLines } from "../processes/lines.ts";
import { Filling } from "./filling.ts";
import { job } from "./jobs.ts";

let filling: Filling | undefined;

await answerLines(async (message) => {
  const asked = job.parse(message);
  if (asked.kind === "open") {
    filling = await Filling.open(asked);
    return {};
  }
  if (!filling) throw new Error("no data directory is open");
  if (asked.kind === "write") return { task: await filling.write(asked) };
  await filling.close();
  filling = undefined;
  return {};
});

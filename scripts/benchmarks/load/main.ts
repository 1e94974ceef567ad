/** The load generator, a separate process so that the measured server has a core to itself. */
import { answerLines } from "../processes/lines.ts";
import { closedLoop } from "./closed-loop.ts";
import { firstTokens } from "./first-tokens.ts";
import { HeldStreams } from "./held.ts";
import { type Job, job } from "./jobs.ts";
import { readTogether } from "./readers.ts";

const held = new HeldStreams();

async function perform(asked: Job): Promise<object> {
  switch (asked.kind) {
    case "exchanges":
      return closedLoop(asked);
    case "readers":
      return readTogether(asked);
    case "first-tokens":
      return firstTokens(asked);
    case "hold":
      return { open: await held.hold(asked) };
    case "let-go":
      held.letGo();
      return { open: 0 };
  }
}

await answerLines((message) => perform(job.parse(message)));

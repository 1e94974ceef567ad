/** The SDK's client, with the upstream as its child process: the cost of a call without a gateway in between. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { answerLines } from "../processes/lines.ts";
import { Samples } from "../statistics.ts";
import { directJob } from "./config.ts";
import { ANSWER, CALLED, UPSTREAM_PROGRAM } from "./upstream-tools.ts";

/** Far more than the client can make. */
const CALLS_PER_SECOND = 200_000;

const client = new Client({ name: "gatehouse-bench", version: "1.0.0" });
await client.connect(new StdioClientTransport(UPSTREAM_PROGRAM));

await answerLines(async (message) => {
  const { concurrency, seconds } = directJob.parse(message);
  const durations = new Samples(Math.ceil(seconds * CALLS_PER_SECOND) + concurrency);
  const deadline = performance.now() + seconds * 1000;
  let calls = 0;

  async function callOverAndOver(): Promise<void> {
    for (let begun = performance.now(); begun < deadline; ) {
      const { content } = await client.callTool(CALLED);
      if (!JSON.stringify(content).includes(ANSWER)) throw new Error("an answer that is not as expected");
      const now = performance.now();
      if (now < deadline) {
        calls++;
        durations.add(now - begun);
      }
      begun = now;
    }
  }

  await Promise.all(Array.from({ length: concurrency }, callOverAndOver));
  return { perSecond: calls / seconds, p50: durations.percentile(50), p99: durations.percentile(99) };
});

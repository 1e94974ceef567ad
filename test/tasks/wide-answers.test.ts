/**
 * Models whose answers start any number of tool calls: the call fails, others are served, and the next model is
 * asked.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { dispatch, ended, type Stage, startStage, until } from "./support.ts";

setDefaultTimeout(60_000);

/** Events after which the upstream gives up, so a failing test ends. */
const ENOUGH = 50_000;

const event = (delta: object): string => {
  const choices = [{ index: 0, delta, finish_reason: null }];
  return `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "a", choices })}\n\n`;
};
const beginning = (number: number, index = number): object => ({
  index,
  id: `c${number}`,
  type: "function",
  function: { name: `up__t${number}`, arguments: "" },
});

/** An upstream that sends one event for each number, on demand, and counts them. */
function startEndless(eventOf: (number: number) => string) {
  const sent = { events: 0 };
  const encoder = new TextEncoder();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: () =>
      new Response(
        new ReadableStream(
          {
            async pull(controller) {
              // Lets other calls of this server, and of the gateway in the same process, run in between.
              await new Promise((resolve) => setImmediate(resolve));
              if (sent.events === ENOUGH) controller.close();
              else controller.enqueue(encoder.encode(eventOf(sent.events++)));
            },
          },
          { highWaterMark: 0 },
        ),
        { headers: { "content-type": "text/event-stream" } },
      ),
  });
  return { sent, url: `http://127.0.0.1:${server.port}/v1`, close: () => server.stop(true) };
}

let endless: ReturnType<typeof startEndless>;
let number: (of: number) => string;
let stage: Stage;
beforeEach(async () => {
  endless = startEndless((of) => number(of));
  const provider = `{ kind: openai-compatible, base_url: "${endless.url}" }`;
  stage = await startStage({ tiers: { 1: ["wide/a", "b"] }, providers: { wide: provider } });
  stage.upstream.script("b", { chunks: ["I can."] });
  await stage.gateway.agent("clerk");
});
afterEach(async () => {
  await stage.stop();
  await endless.close();
});

async function fallsBack(): Promise<void> {
  const { gateway } = stage;
  const id = await dispatch(gateway, { agent: "clerk" });
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "I can.", model: "up/b" });
}

describe("a model's answer", () => {
  test.each([
    ["of one index", 0],
    ["of an index each", undefined],
  ])("with 64,000 tool calls %s in one event is refused before it is parsed", async (_name, index) => {
    const calls = Array.from({ length: 64_000 }, (_, of) => beginning(of, index));
    const text = event({ tool_calls: calls });
    number = () => text;
    await fallsBack();
    expect(endless.sent.events).toBeLessThan(16);
  });

  test("that never stops starting tool calls is abandoned, and another call is answered meanwhile", async () => {
    number = (of) => event({ tool_calls: [beginning(of)] });
    const { gateway } = stage;
    const id = await dispatch(gateway, { agent: "clerk" });
    await until(() => endless.sent.events > 0);
    expect((await gateway.call("GET", "/v1/agents")).status).toBe(200);
    expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", model: "up/b" });
    // 129 events are read; the others were in transit.
    expect(endless.sent.events).toBeLessThan(5_000);
  });
});

/**
 * Models whose answers start any number of tool calls: the call fails, others are served, and the next model is
 * asked.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type EndlessModel, startEndlessModel } from "../support/endless-model.ts";
import { dispatch, ended, type Stage, startStage, until } from "./support.ts";

setDefaultTimeout(60_000);

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

let endless: EndlessModel;
let number: (of: number) => string;
let stage: Stage;
beforeEach(async () => {
  endless = startEndlessModel((of) => number(of));
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

  test("that never stops starting tool calls is abandoned, and another call is answered in the meantime", async () => {
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

import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { defineTool, extractiveModel, runAgent } from "../../src/agents/index.ts";
import { answers, collect, last, only, scripted, text, uncounted } from "./support.ts";

const weather = defineTool({
  name: "weather.today",
  description: "The weather of a city",
  input: Type.Object({ city: Type.String() }, { additionalProperties: false }),
  execute: ({ city }) => ({ city, celsius: 21 }),
});

describe("an answer", () => {
  test("is streamed as it arrives and ends with agent.finished", async () => {
    const model = scripted("a", [answers("Hel", "lo")]);
    const events = await collect(runAgent({ model, instructions: "Be brief.", prompt: "Hi" }));
    expect(events).toEqual([
      { type: "step.started", step: 1 },
      { type: "model.started", model: "test/a" },
      { type: "output.delta", text: "Hel" },
      { type: "output.delta", text: "lo" },
      {
        type: "step.finished",
        step: 1,
        model: "test/a",
        usage: { inputTokens: 10, outputTokens: 5, estimated: false },
        finishReason: "stop",
      },
      {
        type: "agent.finished",
        output: "Hello",
        usage: { inputTokens: 10, outputTokens: 5, estimated: false },
        steps: 1,
      },
    ]);
    expect(model.calls[0]?.prompt).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Hi" }] },
    ]);
    expect(model.calls[0]?.tools).toBeUndefined();
    expect(model.aborted).toEqual([]);
  });

  test("keeps a surrogate pair intact if two deltas split it", async () => {
    const [high, low] = ["😀".slice(0, 1), "😀".slice(1)];
    const events = await collect(runAgent({ model: scripted("a", [answers("x", high, low)]), prompt: "Hi" }));
    expect(only(events, "output.delta").map((event) => event.text)).toEqual(["x", high, low]);
    expect(last(events)).toMatchObject({ type: "agent.finished", output: "x😀" });
  });

  test("without reported token counts is estimated from the bytes sent and received", async () => {
    const model = scripted("a", [[...text("äöü", "😀"), uncounted]]);
    const events = await collect(runAgent({ model, instructions: "1234", prompt: "12345" }));
    expect(last(events)).toMatchObject({ usage: { inputTokens: 3, outputTokens: 3, estimated: true } });
  });

  test("beyond the cap ends the run and the upstream's answer", async () => {
    const model = scripted("a", [[...text("12345", "678901"), "hang"]]);
    const events = await collect(runAgent({ model, prompt: "Hi", maxOutputCharacters: 10 }));
    expect(only(events, "output.delta").map((event) => event.text)).toEqual(["12345"]);
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "internal" });
    expect(last(events)).toMatchObject({ message: "The models' output exceeded 10 characters." });
    expect(model.aborted).toEqual([1]);
  });
});

describe("bad options throw before the first event", () => {
  const model = extractiveModel();
  test.each([
    ["no model", { model: [] }, "model"],
    ["no steps", { maxSteps: 0 }, "maxSteps"],
    ["two tools with one name", { tools: [weather, weather] }, "weather.today"],
    [
      "an answer to continue from",
      { messages: [{ role: "assistant", text: "", toolCalls: [] }] },
      "messages",
    ],
  ] as const)("%s", (_what, options, named) => {
    expect(() => runAgent({ model, prompt: "?", ...options })).toThrow(named);
  });
});

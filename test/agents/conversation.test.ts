import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { defineTool, extractiveModel, inMemory, type Message, runAgent } from "../../src/agents/index.ts";
import { answers, collect, last, only, scripted, types } from "./support.ts";

const weather = defineTool({
  name: "weather.today",
  description: "The weather of a city",
  input: Type.Object({ city: Type.String() }, { additionalProperties: false }),
  execute: ({ city }) => ({ city, celsius: 21 }),
});

describe("memory", () => {
  test("gives the next run the conversation, without failed runs", async () => {
    const memory = inMemory();
    await collect(runAgent({ model: scripted("a", [answers("one")]), prompt: "first", memory }));
    await collect(runAgent({ model: scripted("a", [{ refuse: new Error() }]), prompt: "lost", memory }));
    const model = scripted("a", [answers("two")]);
    await collect(runAgent({ model, prompt: "second", memory }));
    expect(model.calls[0]?.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(await memory.load()).toEqual([
      { role: "user", text: "first" },
      { role: "assistant", text: "one", toolCalls: [] },
      { role: "user", text: "second" },
      { role: "assistant", text: "two", toolCalls: [] },
    ]);
  });

  test("forgets whole turns", async () => {
    const memory = inMemory({ maxMessages: 3 });
    for (const prompt of ["1", "2", "3"]) {
      await collect(runAgent({ model: scripted("a", [answers("ok")]), prompt, memory }));
    }
    expect((await memory.load()).map((message) => message.role)).toEqual(["user", "assistant"]);
  });

  test("that cannot be read ends the run as an event", async () => {
    const memory = { load: () => Promise.reject(new Error("SECRET")), append() {} };
    const events = await collect(runAgent({ model: extractiveModel(), prompt: "?", memory }));
    expect(types(events)).toEqual(["agent.failed"]);
    expect(JSON.stringify(events)).not.toContain("SECRET");
  });
});

describe("continuing from earlier steps", () => {
  const asked = (...ids: string[]): Message => ({
    role: "assistant",
    text: "",
    toolCalls: ids.map((id) => ({ id, tool: "weather.today", arguments: { city: id } })),
  });
  const done = (...ids: string[]): Message => ({
    role: "tool",
    results: ids.map((id) => ({ id, tool: "weather.today", status: "succeeded", output: id })),
  });

  test("makes only calls that have no result, and counts the steps", async () => {
    const model = scripted("a", [answers("ok")]);
    const messages = [asked("a", "b", "c"), done("a")];
    const events = await collect(runAgent({ model, prompt: "?", tools: [weather], messages }));
    expect(only(events, "tool.result").map(({ id }) => id)).toEqual(["b", "c"]);
    const prompt = model.calls[0]?.prompt ?? [];
    expect(prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(prompt[2]?.content).toHaveLength(3);
    expect(only(events, "step.started")).toEqual([{ type: "step.started", step: 2 }]);
    expect(last(events)).toMatchObject({ type: "agent.finished", steps: 2 });
  });

  test("does not repeat calls that have a result, and applies the limit to both runs", async () => {
    const model = scripted("a", [answers("ok")]);
    const messages = [asked("a"), done("a")];
    const events = await collect(runAgent({ model, prompt: "?", tools: [weather], messages, maxSteps: 1 }));
    expect(types(events)).toEqual(["agent.failed"]);
    expect(events[0]).toMatchObject({ code: "tool_loop_limit", steps: 1 });
    expect(model.calls).toHaveLength(0);
  });
});

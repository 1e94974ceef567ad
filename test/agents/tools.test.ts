import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { defineTool, runAgent, ToolError } from "../../src/agents/index.ts";
import { answers, call, collect, finish, last, only, scripted, text, types } from "./support.ts";

const weather = defineTool({
  name: "weather.today",
  description: "The weather of a city",
  input: Type.Object({ city: Type.String() }, { additionalProperties: false }),
  execute: ({ city }) => ({ city, celsius: 21 }),
});

describe("tools", () => {
  test("run after the answer that requested them, and their results go back", async () => {
    const model = scripted("a", [
      [...text("Let me see."), call("weather__today", { city: "Bonn" }), finish("tool-calls")],
      answers("21 degrees"),
    ]);
    const events = await collect(runAgent({ model, prompt: "Weather?", tools: [weather] }));
    expect(types(events)).toEqual([
      "step.started",
      "model.started",
      "output.delta",
      "tool.call",
      "tool.result",
      "step.finished",
      "step.started",
      "model.started",
      "output.delta",
      "step.finished",
      "agent.finished",
    ]);
    expect(only(events, "tool.call")).toEqual([
      { type: "tool.call", id: "c1", tool: "weather.today", arguments: { city: "Bonn" } },
    ]);
    expect(last(events)).toMatchObject({
      output: "21 degrees",
      steps: 2,
      usage: { inputTokens: 20, outputTokens: 10 },
    });
    expect(model.calls[1]?.prompt.slice(1)).toEqual([
      {
        role: "assistant",
        content: [
          { type: "text", text: "Let me see." },
          { type: "tool-call", toolCallId: "c1", toolName: "weather__today", input: { city: "Bonn" } },
        ],
      },
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c1",
            toolName: "weather__today",
            output: { type: "json", value: { city: "Bonn", celsius: 21 } },
          },
        ],
      },
    ]);
  });

  const refused: [what: string, name: string, input: unknown, said: string][] = [
    ["arguments of a wrong type name the field", "weather__today", { city: 5 }, "/city: must be string"],
    ["a missing argument is named", "weather__today", {}, "/city: is required"],
    [
      "an unknown argument is named",
      "weather__today",
      { city: "x", extra: 1 },
      "/extra: is not a known field",
    ],
    ["arguments that are not JSON", "weather__today", "{city", "not a valid JSON object"],
    ["an unknown tool", "nothing", {}, 'There is no tool "nothing". The tools are: weather.today.'],
  ];
  test.each(refused)("%s, and the tool is not called", async (_what, name, input, said) => {
    let executed = 0;
    const tool = { ...weather, execute: () => ++executed };
    const model = scripted("a", [[call(name, input), finish("tool-calls")], answers("ok")]);
    const events = await collect(runAgent({ model, prompt: "?", tools: [tool] }));
    const [result] = only(events, "tool.result");
    expect(result?.status).toBe("denied");
    expect(result?.output).toContain(said);
    expect(executed).toBe(0);
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain(JSON.stringify(said).slice(1, -1));
    expect(last(events)).toMatchObject({ type: "agent.finished", output: "ok" });
  });

  test("that throw show the model a ToolError's message, but nothing of other errors", async () => {
    const failing = (name: string, error: Error) =>
      defineTool({
        name,
        description: "",
        input: Type.Object({}),
        execute() {
          throw error;
        },
      });
    const tools = [failing("told", new ToolError("No such city")), failing("secret", new Error("SECRET"))];
    const model = scripted("a", [
      [call("told", {}, "1"), call("secret", "", "2"), finish("tool-calls")],
      answers("ok"),
    ]);
    const events = await collect(runAgent({ model, prompt: "?", tools }));
    expect(only(events, "tool.result").map(({ id, status, output }) => [id, status, output])).toEqual([
      ["1", "failed", "No such city"],
      ["2", "failed", "The tool secret failed."],
    ]);
    expect(JSON.stringify([events, model.calls[1]?.prompt])).not.toContain("SECRET");
  });

  test("have their output truncated, with a note", async () => {
    const long = defineTool({
      name: "long",
      description: "",
      input: Type.Object({}),
      execute: () => ["x".repeat(50)],
    });
    const model = scripted("a", [[call("long", {}), finish("tool-calls")], answers("ok")]);
    const events = await collect(
      runAgent({ model, prompt: "?", tools: [long], maxToolOutputCharacters: 10 }),
    );
    expect(only(events, "tool.result")[0]?.output).toBe('["xxxxxxxx\n[cut: the first 10 of 54 characters]');
  });

  test("called twice with one id get separate ids", async () => {
    const both = [call("weather__today", { city: "a" }), call("weather__today", { city: "b" })];
    const model = scripted("a", [
      [...both, finish("tool-calls")],
      [both[0] ?? finish(), finish()],
      answers("ok"),
    ]);
    const events = await collect(runAgent({ model, prompt: "?", tools: [weather] }));
    expect(only(events, "tool.result").map(({ id }) => id)).toEqual(["c1", "c1_2", "c1_3"]);
  });

  test("requested in every step end the run at the limit", async () => {
    const model = scripted("a", [[call("weather__today", { city: "x" }), finish("tool-calls")]]);
    const events = await collect(runAgent({ model, prompt: "?", tools: [weather], maxSteps: 3 }));
    expect(model.calls).toHaveLength(3);
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "tool_loop_limit", steps: 3 });
  });

  test("carry Gemini's signature back to it", async () => {
    const signed = {
      ...call("weather__today", { city: "x" }),
      providerMetadata: { google: { thoughtSignature: "s" }, openai: { itemId: "fc_1" } },
    };
    const model = scripted("a", [[signed, finish("tool-calls")], answers("ok")]);
    await collect(runAgent({ model, prompt: "?", tools: [weather] }));
    expect(model.calls[1]?.prompt[1]?.content[0]).toMatchObject({
      providerOptions: { google: { thoughtSignature: "s" } },
    });
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain("fc_1");
  });
});

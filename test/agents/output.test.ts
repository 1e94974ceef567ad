import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { defineTool, type Message, runAgent } from "../../src/agents/index.ts";
import { answers, call, collect, finish, last, only, scripted, textSince, types } from "./support.ts";

const schema = {
  type: "object",
  properties: { city: { type: "string" }, celsius: { type: "number" } },
  required: ["city", "celsius"],
} as const;
const output = { schema };
const VALID = '{"city":"Bonn","celsius":21}';
const answered = (text: string): Message => ({ role: "assistant", text, toolCalls: [] });

describe("an output with a schema", () => {
  test("is the answer's JSON and its value", async () => {
    const model = scripted("a", [answers(VALID)]);
    const events = await collect(runAgent({ model, prompt: "?", output }));
    expect(last(events)).toMatchObject({
      type: "agent.finished",
      output: VALID,
      json: { city: "Bonn", celsius: 21 },
      steps: 1,
    });
  });

  test("is requested in the provider's own way and in the instructions", async () => {
    const model = scripted("a", [answers(VALID)]);
    await collect(runAgent({ model, prompt: "?", instructions: "Be brief.", output }));
    const [sent] = model.calls;
    expect<unknown>(sent?.responseFormat).toEqual({ type: "json", schema });
    expect(sent?.providerOptions?.openai).toEqual({ strictJsonSchema: false });
    expect(sent?.prompt[0]?.role).toBe("system");
    expect(sent?.prompt[0]?.content).toStartWith("Be brief.\n\n");
    expect(sent?.prompt[0]?.content).toContain(JSON.stringify(schema));
  });

  test("is requested only in the instructions while there are tools, because some providers refuse both together", async () => {
    const clock = defineTool({
      name: "clock",
      description: "",
      input: Type.Object({}),
      execute: () => "noon",
    });
    const model = scripted("a", [[call("clock", {}), finish("tool-calls")], answers(VALID)]);
    const events = await collect(runAgent({ model, prompt: "?", tools: [clock], output }));
    expect(last(events)).toMatchObject({ type: "agent.finished", output: VALID, steps: 2 });
    expect(model.calls.map(({ responseFormat }) => responseFormat)).toEqual([undefined, undefined]);
  });

  test("is corrected by the model, which receives the errors", async () => {
    const model = scripted("a", [answers("In Bonn?"), answers('{"city":"Bonn"}'), answers(VALID)]);
    const events = await collect(runAgent({ model, prompt: "?", output }));
    expect(last(events)).toMatchObject({ type: "agent.finished", output: VALID, steps: 3 });
    expect(textSince(events)).toBe(VALID);
    expect(only(events, "output.reset")).toHaveLength(2);
    const [first, second] = [model.calls[1]?.prompt.at(-1), model.calls[2]?.prompt.at(-1)];
    expect(JSON.stringify(first)).toContain("not JSON");
    expect(JSON.stringify(second)).toContain("/celsius: is required");
    expect(model.calls[2]?.prompt.map(({ role }) => role).join(" ")).toBe(
      "system user assistant user assistant user",
    );
  });

  test("is corrected at most twice", async () => {
    const model = scripted("a", [answers("never")]);
    const events = await collect(runAgent({ model, prompt: "?", output }));
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "output_invalid", steps: 3 });
    expect(model.calls).toHaveLength(3);
  });

  test("fails as output if it is still invalid when the steps are used up", async () => {
    const model = scripted("a", [answers("never")]);
    const events = await collect(runAgent({ model, prompt: "?", output, maxSteps: 2 }));
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "output_invalid", steps: 2 });
  });

  test("can be checked by the host", async () => {
    const model = scripted("a", [answers("1"), answers("2")]);
    const validate = (value: unknown) => (value === 2 ? [] : [{ path: "", message: "must be even" }]);
    const events = await collect(runAgent({ model, prompt: "?", output: { schema: {}, validate } }));
    expect(last(events)).toMatchObject({ type: "agent.finished", json: 2 });
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain("must be even");
  });
});

describe("continuing a run with a schema", () => {
  test("checks the saved answer without another call, and shows its text", async () => {
    const model = scripted("a", [answers("unused")]);
    const events = await collect(runAgent({ model, prompt: "?", output, messages: [answered(VALID)] }));
    expect(types(events)).toEqual(["output.delta", "agent.finished"]);
    expect(last(events)).toMatchObject({ output: VALID, json: { city: "Bonn", celsius: 21 }, steps: 1 });
    expect(model.calls).toHaveLength(0);
  });

  test("repeats the correction requests that saved answers led to, and counts them", async () => {
    const model = scripted("a", [answers("never")]);
    const whole = await collect(runAgent({ model, prompt: "?", output }));
    expect(last(whole)).toMatchObject({ code: "output_invalid" });
    for (const done of [1, 2]) {
      const resumed = scripted("a", [answers("never")]);
      const messages = Array.from({ length: done }, () => answered("never"));
      const events = await collect(runAgent({ model: resumed, prompt: "?", output, messages }));
      expect(last(events)).toMatchObject({ code: "output_invalid", steps: 3 });
      expect(resumed.calls.map(({ prompt }) => prompt)).toEqual(
        model.calls.slice(done).map(({ prompt }) => prompt),
      );
    }
    const none = scripted("a", [answers(VALID)]);
    const messages = [answered("never"), answered("never"), answered("never")];
    const events = await collect(runAgent({ model: none, prompt: "?", output, messages }));
    expect(types(events)).toEqual(["agent.failed"]);
    expect(none.calls).toHaveLength(0);
  });
});

/** An answer larger than any honest one is a failed call: the next model is asked, and memory stays bounded. */
import { describe, expect, test } from "bun:test";
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { runAgent } from "../../src/agents/index.ts";
import { answers, call, collect, finish, last, only, scripted, text } from "./support.ts";

/** Parts after which an endless answer is stopped, so a failing test ends. */
const ENOUGH = 200_000;

/** A model with an endless answer. Counts the parts that were read. */
function endless(part: (number: number) => LanguageModelV4StreamPart) {
  const read = { parts: 0 };
  const model = scripted("endless", []);
  const stream = () =>
    new ReadableStream<LanguageModelV4StreamPart>(
      {
        pull(controller) {
          if (read.parts === ENOUGH) controller.close();
          else controller.enqueue(part(read.parts++));
        },
      },
      { highWaterMark: 0 },
    );
  return { read, model: { ...model, doStream: async () => ({ stream: stream() }) } };
}

const start = (number: number): LanguageModelV4StreamPart => ({
  type: "tool-input-start",
  id: `c${number}`,
  toolName: "up__echo",
});

describe("a model that starts more than 128 tool calls in one answer", () => {
  test("is abandoned after the 129th, finished or not, and the next model answers", async () => {
    const { model, read } = endless(start);
    const events = await collect(
      runAgent({ model: [model, scripted("b", [answers("I can.")])], prompt: "Go." }),
    );
    expect(read.parts).toBe(129);
    expect(only(events, "model.fallback")).toMatchObject([{ to: "test/b", reason: "answer_too_large" }]);
    expect(last(events)).toMatchObject({ type: "agent.finished", output: "I can." });
  });

  test("ends a run without another model as model_unavailable", async () => {
    const calls = Array.from({ length: 129 }, (_, number) => call("up__echo", {}, `c${number}`));
    const model = scripted("a", [[...calls, finish("tool-calls")]]);
    expect(last(await collect(runAgent({ model, prompt: "Go." })))).toMatchObject({
      type: "agent.failed",
      code: "model_unavailable",
    });
  });

  test("is abandoned too if all its calls have the same id", async () => {
    const calls = Array.from({ length: 129 }, () => call("up__echo", {}));
    const model = scripted("a", [[...calls, finish("tool-calls")]]);
    expect(last(await collect(runAgent({ model, prompt: "Go." })))).toMatchObject({
      code: "model_unavailable",
    });
  });

  test("128 are accepted", async () => {
    const calls = Array.from({ length: 128 }, (_, number) => call("up__echo", {}, `c${number}`));
    const model = scripted("a", [[...calls, finish("tool-calls")], answers("Done.")]);
    const events = await collect(runAgent({ model, prompt: "Go." }));
    expect(only(events, "tool.result")).toHaveLength(128);
    expect(last(events)).toMatchObject({ type: "agent.finished" });
  });
});

describe("names and ids of tool calls count as output", () => {
  test("so a run with long names or ids ends at its limit", async () => {
    const model = scripted("a", [
      [{ type: "tool-input-start", id: "c".repeat(600), toolName: "x".repeat(600) }, finish("tool-calls")],
    ]);
    const events = await collect(runAgent({ model, prompt: "Go.", maxOutputCharacters: 1_000 }));
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "internal" });
  });
});

test.each<[string, LanguageModelV4StreamPart]>([
  ["empty texts", { type: "text-delta", id: "0", delta: "" }],
  ["beginnings", { type: "text-start", id: "0" }],
  ["empty arguments", { type: "tool-input-delta", id: "0", delta: "" }],
])("an endless answer of %s is abandoned, and the next model answers", async (_name, part) => {
  const { model, read } = endless(() => part);
  const events = await collect(
    runAgent({ model: [model, scripted("b", [answers("I can.")])], prompt: "Go." }),
  );
  expect(read.parts).toBe(100_001);
  expect(last(events)).toMatchObject({ type: "agent.finished", output: "I can." });
});

test("the text received so far is withdrawn", async () => {
  const calls = Array.from({ length: 129 }, (_, number) => start(number));
  const model = scripted("a", [[...text("I will."), ...calls]]);
  const events = await collect(
    runAgent({ model: [model, scripted("b", [answers("I can.")])], prompt: "Go." }),
  );
  expect(only(events, "output.reset")).toHaveLength(1);
});

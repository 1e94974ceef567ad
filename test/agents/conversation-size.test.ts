/**
 * The content that a run sends to its models is bounded: by the tool results of one step, and by the whole
 * conversation.
 */
import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { defineTool, inMemory, type Message, runAgent } from "../../src/agents/index.ts";
import { answers, call, collect, finish, last, only, type Script, scripted, types } from "./support.ts";

const KIB = 1024;
const page = defineTool({
  name: "page",
  description: "A page",
  input: Type.Object({ bytes: Type.Integer() }),
  execute: ({ bytes }) => "x".repeat(bytes),
});

/** A step that calls the tool this many times, for this many bytes each time. */
const pages = (count: number, bytes = KIB): Script => [
  ...Array.from({ length: count }, (_, index) => call("page", { bytes }, `c${index}`)),
  finish("tool-calls"),
];
const exceeded = (message: string) => ({ type: "agent.failed", code: "tool_loop_limit", message });

describe("the tool results of one step", () => {
  const limits = { maxStepBytes: 4 * KIB };

  test("end the run beyond the limit, before the next call and without asking a model again", async () => {
    const model = scripted("a", [pages(8), answers("Done.")]);
    const events = await collect(runAgent({ model, prompt: "Go.", tools: [page], ...limits }));
    expect(only(events, "tool.result")).toHaveLength(4);
    expect(last(events)).toMatchObject(exceeded("The tool results of one step exceed 4096 bytes."));
    expect(model.calls).toHaveLength(1);
  });

  test("may be as large again in the next step", async () => {
    const model = scripted("a", [pages(3), pages(3), answers("Done.")]);
    const events = await collect(runAgent({ model, prompt: "Go.", tools: [page], ...limits }));
    expect(last(events)).toMatchObject({ type: "agent.finished", output: "Done." });
  });

  test("include results from before an interruption", async () => {
    const ids = Array.from({ length: 8 }, (_, index) => `c${index}`);
    const toolCalls = ids.map((id) => ({ id, tool: "page", arguments: { bytes: KIB } }));
    const results = ids
      .slice(0, 4)
      .map((id) => ({ id, tool: "page", status: "succeeded" as const, output: "x".repeat(KIB) }));
    const messages: Message[] = [
      { role: "assistant", text: "", toolCalls },
      { role: "tool", results },
    ];
    const model = scripted("a", [answers("Done.")]);
    const events = await collect(runAgent({ model, prompt: "Go.", messages, tools: [page], ...limits }));
    expect(only(events, "tool.result")).toHaveLength(0);
    expect(last(events)).toMatchObject({ code: "tool_loop_limit" });
  });

  test("that name the tools to a model that calls unknown ones are cut like others", async () => {
    const tools = Array.from({ length: 40 }, (_, index) => ({ ...page, name: `page_${index}` }));
    const model = scripted("a", [[call("nothing", {}), finish("tool-calls")], answers("Done.")]);
    const events = await collect(runAgent({ model, prompt: "Go.", tools, maxToolOutputCharacters: 100 }));
    const [result] = only(events, "tool.result");
    expect(String(result?.output).length).toBeLessThan(200);
  });
});

describe("a conversation", () => {
  test("ends its run if its steps together exceed the limit", async () => {
    const model = scripted("a", [pages(2)]);
    const options = { model, prompt: "Go.", tools: [page], maxSteps: 100, maxConversationBytes: 16 * KIB };
    const events = await collect(runAgent(options));
    expect(last(events)).toMatchObject(exceeded("The conversation exceeds 16384 bytes."));
    expect(model.calls.length).toBeGreaterThan(2);
    expect(model.calls.length).toBeLessThan(8);
  });

  test.each([
    ["answers without results", [...Array(4).keys()].map(() => call("no", "x".repeat(KIB)))],
    ["calls of no bytes", [...Array(16).keys()].map((index) => call("page", { bytes: 0 }, `c${index}`))],
  ])("counts %s", async (_name, moves) => {
    const model = scripted("a", [[...moves, finish("tool-calls")]]);
    const options = { model, prompt: "Go.", tools: [page], maxSteps: 100, maxConversationBytes: 64 * KIB };
    expect(last(await collect(runAgent(options)))).toMatchObject({ code: "tool_loop_limit" });
    expect(model.calls.length).toBeLessThan(40);
  });

  test("counts earlier messages", async () => {
    const memory = inMemory();
    const model = scripted("a", [answers("x".repeat(KIB))]);
    const options = { model, prompt: "Go.", memory, maxConversationBytes: 4 * KIB };
    const ends = [];
    for (let run = 0; run < 5; run++) ends.push(types(await collect(runAgent(options))).at(-1));
    expect(ends).toEqual([
      "agent.finished",
      "agent.finished",
      "agent.finished",
      "agent.finished",
      "agent.failed",
    ]);
  });
});

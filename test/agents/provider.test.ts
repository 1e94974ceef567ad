import { afterAll, beforeAll, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Type, { type Static } from "typebox";
import { Value } from "typebox/value";
import { type AgentEvent, defineTool, runAgent } from "../../src/agents/index.ts";
import { until } from "../support/until.ts";
import { collect, last, only, types } from "./support.ts";

/** A real HTTP server that speaks the protocol; the model's name selects its behaviour. */
let server: Bun.Server<undefined>;
const Body = Type.Object({
  model: Type.String(),
  messages: Type.Array(Type.Object({ role: Type.String() })),
});
const bodies: Static<typeof Body>[] = [];
const gone: string[] = [];

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const usage = `data: ${JSON.stringify({ id: "1", choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } })}\n\n`;
const toolCall = {
  tool_calls: [
    {
      index: 0,
      id: "call_1",
      type: "function",
      function: { name: "time__now", arguments: '{"zone":"UTC"}' },
    },
  ],
};

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const body = Value.Parse(Body, await request.json());
      bodies.push(body);
      if (body.model === "down") return new Response("SECRET", { status: 503 });
      request.signal.addEventListener("abort", () => gone.push(body.model));
      const hasResult = bodies.at(-1)?.messages.some(({ role }) => role === "tool");
      async function* lines() {
        if (body.model === "tools" && !hasResult) {
          yield chunk(toolCall) + chunk({}, "tool_calls") + usage;
        } else {
          yield chunk({ content: "Hel" });
          if (body.model === "cut") return;
          if (body.model === "hang") await new Promise(() => {});
          yield `${chunk({ content: "lo" })}${chunk({}, "stop")}${usage}data: [DONE]\n\n`;
        }
      }
      return new Response(lines(), { headers: { "content-type": "text/event-stream" } });
    },
  });
});
afterAll(() => server.stop(true));

function model(name: string) {
  const provider = createOpenAICompatible({ name: "local", baseURL: `${server.url}v1`, includeUsage: true });
  return { id: `local/${name}`, model: provider(name) };
}

test("a tool loop over the wire", async () => {
  const now = defineTool({
    name: "time.now",
    description: "The time",
    input: Type.Object({ zone: Type.String() }),
    execute: ({ zone }) => `noon ${zone}`,
  });
  const events = await collect(runAgent({ model: model("tools"), prompt: "Time?", tools: [now] }));
  expect(last(events)).toMatchObject({
    type: "agent.finished",
    output: "Hello",
    usage: { inputTokens: 14, outputTokens: 6, estimated: false },
  });
  const sent: unknown[] = bodies.at(-1)?.messages.slice(1) ?? [];
  expect(sent).toEqual([
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "time__now", arguments: '{"zone":"UTC"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "noon UTC" },
  ]);
});

test("a server that is down, one that cuts off its answer, one that answers", async () => {
  const events = await collect(
    runAgent({
      model: [model("down"), model("cut"), { ...unreachable(), id: "gone/x" }, model("good")],
      prompt: "?",
    }),
  );
  expect(only(events, "model.fallback").map(({ reason }) => reason)).toEqual([
    "http_503",
    "cut",
    "connection",
  ]);
  expect(types(events)).toContain("output.reset");
  expect(last(events)).toMatchObject({ type: "agent.finished", output: "Hello" });
  expect(JSON.stringify(events)).not.toContain("SECRET");
});

test("cancelling closes the connection", async () => {
  const controller = new AbortController();
  const events: AgentEvent[] = [];
  for await (const event of runAgent({ model: model("hang"), prompt: "?", signal: controller.signal })) {
    events.push(event);
    if (event.type === "output.delta") setTimeout(() => controller.abort(), 1);
  }
  expect(last(events)).toMatchObject({ type: "agent.failed", code: "cancelled", usage: { estimated: true } });
  await until(() => gone.includes("hang"));
});

function unreachable() {
  const provider = createOpenAICompatible({ name: "gone", baseURL: "http://127.0.0.1:1/v1" });
  return { model: provider("x") };
}

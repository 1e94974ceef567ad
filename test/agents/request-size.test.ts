import { afterAll, expect, test } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import fc from "fast-check";
import {
  type BeforeModelCall,
  defineTool,
  type LanguageModel,
  type Message,
  runAgent,
  type Tool,
} from "../../src/agents/index.ts";
import { jsonBytes, textBytes } from "../../src/agents/model/request-size.ts";

/** Bytes for the start of a request: its model and options. */
const HEAD = 512;

/** Receives the requests to every provider, and refuses them. */
let sent = -1;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  development: false,
  async fetch(request) {
    sent = (await request.arrayBuffer()).byteLength;
    return Response.json({ error: { message: "no", type: "no", status: "no", code: 400 } }, { status: 400 });
  },
});
afterAll(() => server.stop(true));

const baseURL = `http://127.0.0.1:${server.port}/v1`;
const settings = { apiKey: "key", baseURL };
const MODELS: readonly (readonly [string, LanguageModel])[] = [
  ["openai-compatible", createOpenAICompatible({ name: "up", ...settings, includeUsage: true })("a-model")],
  ["openai", createOpenAI(settings)("gpt-5-mini")],
  ["anthropic", createAnthropic(settings)("claude-sonnet-4-5")],
  ["google", createGoogleGenerativeAI(settings)("gemini-2.5-flash")],
];

/** Plain letters, and characters that JSON or UTF-8 makes longer. */
const text = fc.string({
  unit: fc.constantFrom("a", "b", " ", "\n", "\t", '"', "\\\\", "\u0001", "ä", "€", "😀"),
  maxLength: 60,
});
const value = fc.oneof(
  text,
  fc.integer(),
  fc.boolean(),
  fc.array(text, { maxLength: 4 }),
  fc.dictionary(text, text, { maxKeys: 4 }),
);
const property = fc.oneof(
  fc.record({ type: fc.constant("string"), description: text }),
  fc.record({
    type: fc.constant("array"),
    items: fc.record({ type: fc.constant("string"), enum: fc.array(text, { minLength: 1, maxLength: 3 }) }),
  }),
  fc.record({
    type: fc.constant("object"),
    properties: fc.dictionary(
      fc.stringMatching(/^[a-z]{1,8}$/),
      fc.record({ type: fc.constant("integer") }),
      { maxKeys: 3 },
    ),
  }),
);
const tools = fc
  .array(
    fc.record({
      description: text,
      properties: fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), property, { maxKeys: 4 }),
    }),
    { maxLength: 5 },
  )
  .map((list): Tool[] =>
    list.map(({ description, properties }, index) =>
      defineTool({
        name: `up.tool_${index}`,
        description,
        inputSchema: { type: "object", properties, required: Object.keys(properties) },
        execute: () => null,
      }),
    ),
  );
const turn = fc
  .tuple(
    text,
    fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), value, { maxKeys: 4 }),
    value,
    fc.constantFrom("succeeded", "failed", "denied"),
    fc.uuid(),
  )
  .map(([said, input, output, status, id]): Message[] => [
    { role: "assistant", text: said, toolCalls: [{ id, tool: "up.tool_0", arguments: input }] },
    { role: "tool", results: [{ id, tool: "up.tool_0", status: status as "succeeded", output }] },
  ]);

const part = fc.oneof(
  text.map((written) => ({ type: "text", text: written }) as const),
  fc
    .tuple(fc.constantFrom("image/png", "application/pdf", "text/csv"), fc.base64String({ maxLength: 400 }))
    .map(([mediaType, data]) => ({ type: "file", mediaType, data }) as const),
);
/** Now and then the output has a schema. */
const output = fc.option(
  fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), property, { maxKeys: 4 }).map((properties) => ({
    schema: { type: "object", properties },
  })),
  { nil: undefined },
);

test.each(MODELS)("the request to %s is never larger than its counted size", async (_name, model) => {
  await fc.assert(
    fc.asyncProperty(
      text,
      text,
      tools,
      fc.array(turn, { maxLength: 4 }),
      fc.array(part, { maxLength: 4 }),
      output,
      async (instructions, question, offered, turns, parts, asked) => {
        let counted = -1;
        sent = -1;
        const beforeModelCall = (info: BeforeModelCall) => {
          counted = info.sentBytes();
        };
        const prompt = [{ role: "user", text: `${question}?`, parts } as const];
        const run = {
          ...{ model, instructions, prompt, tools: offered, messages: turns.flat() },
          ...(asked && { output: asked }),
        };
        for await (const _ of runAgent({ ...run, hooks: { beforeModelCall } }));
        expect(sent).toBeGreaterThan(0);
        expect(counted + HEAD).toBeGreaterThanOrEqual(sent);
      },
    ),
    { numRuns: 200, seed: 7 },
  );
});

test("bytes are counted as UTF-8, and as a JSON string", () => {
  const any = fc.string({
    unit: fc.oneof(
      fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
      fc.constant("😀"),
    ),
  });
  fc.assert(
    fc.property(any, (given) => {
      expect(textBytes(given)).toBe(new TextEncoder().encode(given).length);
      expect(jsonBytes(given)).toBe(new TextEncoder().encode(JSON.stringify(given)).length - 2);
    }),
    { numRuns: 2_000, seed: 7 },
  );
});

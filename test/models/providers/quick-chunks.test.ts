/** A stream gives the same parts whether its chunks are checked by the package's schema or are known to be text. */
import { expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import fc from "fast-check";
import { quickChunks } from "../../../src/models/providers/quick-chunks.ts";

function modelOf(lines: readonly string[]): LanguageModelV4 {
  const body = lines.map((line) => `data: ${line}\n\n`).join("");
  const answer = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
  const provider = createOpenAICompatible({
    ...{ name: "up", baseURL: "http://upstream.invalid/v1", includeUsage: true },
    fetch: Object.assign(answer, { preconnect() {} }),
  });
  return provider.chatModel("m");
}

async function partsOf(model: LanguageModelV4): Promise<unknown[]> {
  const { stream } = await model.doStream({
    prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    includeRawChunks: true,
  });
  return Array.fromAsync(stream);
}

/** As JSON, in which errors show their message. */
const shown = (parts: unknown[]) =>
  JSON.stringify(parts, (_, value: unknown) =>
    value instanceof Error ? { name: value.name, message: value.message } : value,
  );

async function expectSame(lines: readonly string[]): Promise<void> {
  expect(shown(await partsOf(quickChunks(modelOf(lines))))).toBe(shown(await partsOf(modelOf(lines))));
}

const chunk = (delta: unknown, more: object = {}, choice: object = {}) =>
  JSON.stringify({ id: "c", created: 1, model: "m", choices: [{ index: 0, delta, ...choice }], ...more });
const END = JSON.stringify({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const USAGE = JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });

test.each<[string, string[]]>([
  ["text", [chunk({ role: "assistant", content: "a" }), chunk({ content: "b" }), END, USAGE]],
  ["an empty text", [chunk({ role: "", content: "" }), END]],
  ["members that nobody reads", [chunk({ content: "a", extra: 1 }, { extra: { x: 1 } }), END]],
  [
    "nulls",
    [chunk({ content: "a", tool_calls: null, refusal: null, reasoning: null }, { usage: null }), END],
  ],
  ["reasoning", [chunk({ reasoning_content: "hm" }), chunk({ content: "a", reasoning: "so" }), END]],
  ["a refusal", [chunk({ content: "a", refusal: "no" }), END]],
  ["parts as content", [chunk({ content: [{ type: "text", text: "a" }] }), END]],
  ["an unknown role", [chunk({ role: "user", content: "a" }), END]],
  ["a number as content", [chunk({ content: 1 }), END]],
  ["no choices", [JSON.stringify({ id: "c" }), END]],
  ["two choices", [JSON.stringify({ choices: [{ delta: { content: "a" } }, { delta: 1 }] }), END]],
  ["an id that is no text", [chunk({ content: "a" }, { id: 1 }), END]],
  ["an error", [JSON.stringify({ error: { message: "broken" } })]],
  ["an error beside text", [chunk({ content: "a" }, { error: { message: "broken" } }), END]],
  ["usage beside text", [chunk({ content: "a" }, { usage: { prompt_tokens: "x" } }), END]],
  ["an end beside text", [chunk({ content: "a" }, {}, { finish_reason: "length" })]],
  ["a time without end", [`{"id":"c","created":1e999,"choices":[{"delta":{"content":"a"}}]}`, END]],
  ["no JSON", ["{", END]],
  [
    "a tool's call",
    [
      chunk({ tool_calls: [{ index: 0, id: "c1", function: { name: "f", arguments: "{" } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "}" } }] }),
      END,
    ],
  ],
])("with %s", async (_, lines) => {
  await expectSame(lines);
});

test("with any values in the places of a text chunk", async () => {
  const value = fc.oneof(fc.constantFrom(undefined, null, "", "a", 0, true, [], {}, [{}], ["a"]));
  const delta = fc.record(
    {
      role: fc.constantFrom("assistant", "", "user", null, 1),
      content: value,
      refusal: value,
      tool_calls: value,
    },
    { requiredKeys: [] },
  );
  const line = fc.record(
    {
      id: value,
      created: value,
      model: value,
      usage: value,
      error: value,
      choices: fc.oneof(
        value,
        fc.array(fc.record({ delta, finish_reason: value }, { requiredKeys: [] }), { maxLength: 2 }),
      ),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 4 }), (lines) =>
      expectSame([...lines.map((each) => JSON.stringify(each)), END]),
    ),
  );
});

test("the package's schema is replaced, and sees no chunk of text", async () => {
  const model = modelOf([chunk({ content: "a" }), chunk({ content: "b" }), END]);
  const schema = Reflect.get(model, "chunkSchema") as {
    safeParseAsync: (value: unknown) => Promise<unknown>;
  };
  const seen: unknown[] = [];
  const check = schema.safeParseAsync.bind(schema);
  Object.assign(schema, {
    safeParseAsync: (value: unknown) => {
      seen.push(value);
      return check(value);
    },
  });
  await partsOf(quickChunks(model));
  expect(seen).toEqual([JSON.parse(END)]);
});

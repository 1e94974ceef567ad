/**
 * Our reader of streams gives the same parts as the package, whatever arrives and however it is split. Where they
 * differ, it is said in differences.test.ts.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { bothModels, eventStream, streamedBy } from "./both.ts";

const encoder = new TextEncoder();

/** If the answer fails, ours may have more parts: the package loses those of the chunk that it cannot continue. */
async function expectSame(bytes: readonly Uint8Array[]): Promise<void> {
  const models = bothModels(() => eventStream(bytes));
  const theirs = await streamedBy(models.theirs);
  const { parts, failure } = await streamedBy(models.ours);
  expect(failure).toEqual(theirs.failure);
  expect(failure === null ? parts : parts.slice(0, theirs.parts.length)).toEqual(theirs.parts);
}

const events = (lines: readonly string[]) => lines.map((line) => `data: ${line}\n\n`).join("");

const chunk = (delta: unknown, more: object = {}, choice: object = {}) =>
  JSON.stringify({ id: "c", created: 1, model: "m", choices: [{ index: 0, delta, ...choice }], ...more });
const END = JSON.stringify({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const USAGE = JSON.stringify({
  choices: [],
  usage: {
    ...{ prompt_tokens: 10, completion_tokens: 20, total_tokens: 30, cost: 0.1 },
    prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
    completion_tokens_details: {
      ...{ reasoning_tokens: 5, accepted_prediction_tokens: 1, rejected_prediction_tokens: 0 },
    },
  },
});
const call = (...deltas: object[]) => chunk({ tool_calls: deltas });
const ended = (finish_reason: string) => chunk({}, {}, { finish_reason });

test.each<[string, string[]]>([
  ["text", [chunk({ role: "assistant", content: "a" }), chunk({ content: "b" }), END, USAGE, "[DONE]"]],
  ["an empty text", [chunk({ role: "", content: "" }), END]],
  ["members that nobody reads", [chunk({ content: "a", extra: 1 }, { extra: { x: 1 } }), END]],
  [
    "nulls",
    [chunk({ content: "a", tool_calls: null, refusal: null, reasoning: null }, { usage: null }), END],
  ],
  ["reasoning", [chunk({ reasoning_content: "hm" }), chunk({ content: "a", reasoning: "so" }), END]],
  [
    "reasoning after text",
    [chunk({ content: "a" }), chunk({ reasoning: "hm" }), chunk({ content: "b" }), END],
  ],
  [
    "reasoning before a call",
    [chunk({ reasoning: "hm" }), call({ index: 0, id: "1", function: { name: "f" } })],
  ],
  ["reasoning alone", [chunk({ reasoning_content: "hm", reasoning: "so" }), END]],
  ["a refusal", [chunk({ content: "a", refusal: "no" }), END]],
  ["a refusal after the reason", [END, chunk({ refusal: "no" })]],
  ["a refusal that is no text", [chunk({ content: "a", refusal: false }), END]],
  [
    "parts as content",
    [
      chunk({
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "" },
        ],
      }),
      END,
    ],
  ],
  [
    "thoughts as content",
    [
      chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }, 1, { type: "x" }] }] }),
      END,
    ],
  ],
  ["content of other types", [chunk({ content: [{ type: "image", text: "a" }, { type: "thinking" }] }), END]],
  ["an unknown role", [chunk({ role: "user", content: "a" }), END]],
  ["a number as content", [chunk({ content: 1 }), END]],
  ["no choices", [JSON.stringify({ id: "c" }), END]],
  [
    "two choices",
    [JSON.stringify({ choices: [{ delta: { content: "a" } }, { delta: { content: "b" } }] }), END],
  ],
  ["a choice without a delta", [JSON.stringify({ choices: [{ index: 0 }] }), END]],
  ["an id that is no text", [chunk({ content: "a" }, { id: 1 }), END]],
  [
    "metadata that comes late",
    [JSON.stringify({ id: "", created: 0, model: "", choices: [] }), chunk({}), END],
  ],
  ["metadata beyond all dates", [chunk({ content: "a" }, { created: 1e300 }), END]],
  [
    "an error",
    [JSON.stringify({ error: { message: "broken", type: "x", param: 1, code: 503, status: 429 } })],
  ],
  ["an error without details", [JSON.stringify({ error: { message: "broken" } }), END]],
  ["an error that is no object", [JSON.stringify({ error: "broken" }), END]],
  ["an error of another form", [JSON.stringify({ error: { message: 1 } }), END]],
  ["an error beside text", [chunk({ content: "a" }, { error: { message: "broken", status: 429 } }), END]],
  ["an error after the end", [END, JSON.stringify({ error: { message: "broken" } })]],
  [
    "usage beside text",
    [chunk({ content: "a" }, { usage: { prompt_tokens: 1, completion_tokens: 2 } }), END],
  ],
  ["usage that is no count", [chunk({ content: "a" }, { usage: { prompt_tokens: "x" } }), END]],
  ["usage twice", [chunk({ content: "a" }, { usage: { prompt_tokens: 1 } }), END, USAGE]],
  ["an empty usage", [END, JSON.stringify({ choices: [], usage: {} })]],
  ...["stop", "length", "tool_calls", "function_call", "content_filter", "other", ""].map(
    (reason): [string, string[]] => [`the reason "${reason}"`, [chunk({ content: "a" }), ended(reason)]],
  ),
  ["an end beside text", [chunk({ content: "a" }, {}, { finish_reason: "length" })]],
  ["no end", [chunk({ content: "a" })]],
  ["nothing", []],
  ["only the last event", ["[DONE]"]],
  ["a time without end", [`{"id":"c","created":1e999,"choices":[{"delta":{"content":"a"}}]}`, END]],
  ["no JSON", ["{", END]],
  ["an empty event", ["", END]],
  ["a value that is no object", ["1", "null", "[]", END]],
  ["a forbidden member", [`{"id":"c","choices":[],"__proto__":{"x":1}}`, END]],
  ["members of a constructor", [`{"id":"c","choices":[],"constructor":{"prototype":{"x":1}}}`, END]],
  [
    "a tool's call",
    [
      call({ index: 0, id: "c1", type: "function", function: { name: "f", arguments: "" } }),
      call({ index: 0, function: { arguments: '{"a"' } }),
      call({ index: 0, function: { arguments: ":1}" } }),
      ended("tool_calls"),
    ],
  ],
  ["arguments in one piece", [call({ index: 0, id: "c1", function: { name: "f", arguments: "{}" } })]],
  [
    "two calls at once",
    [
      call(
        { index: 0, id: "c1", function: { name: "f", arguments: "{" } },
        { index: 1, id: "c2", function: { name: "g", arguments: "{" } },
      ),
      call({ index: 1, function: { arguments: "}" } }, { index: 0, function: { arguments: "}" } }),
    ],
  ],
  [
    "calls in another order",
    [1, 0].map((index) => call({ index, id: `c${index}`, function: { name: "f" } })),
  ],
  ["no index", [call({ id: "c1", function: { name: "f", arguments: "{}" } }), ended("tool_calls")]],
  [
    "no index, in pieces",
    [
      call({ id: "c1", function: { name: "f" } }),
      call({ function: { arguments: "{" } }),
      call({ function: {} }),
    ],
  ],
  ["no ids", [0, 1].map((index) => call({ index, function: { name: "f", arguments: "{}" } }))],
  ["an id twice", [0, 1].map((index) => call({ index, id: "c", function: { name: "f", arguments: "{}" } }))],
  [
    "an index twice",
    [1, 2].map((id) => call({ index: 0, id: `c${id}`, function: { name: "f", arguments: "{}" } })),
  ],
  [
    "a name after the arguments",
    [
      call({ index: 0, function: { arguments: "{" } }),
      call({ index: 0, id: "c1", function: { name: null, arguments: '"a":1' } }),
      call({ index: 0, function: { name: "f", arguments: "}" } }),
      call({ index: 0, function: { arguments: " " } }),
    ],
  ],
  ["a blank name", [call({ index: 0, id: "c1", function: { name: " ", arguments: "{}" } }), END]],
  ["a call without a name or an index", [call({ id: "c1", function: { arguments: "{}" } }), END]],
  ["a call without a function", [call({ index: 0, id: "c1" }), END]],
  ["no calls", [chunk({ content: "a", tool_calls: [] }), END]],
  [
    "a signature",
    [
      call({
        ...{ index: 0, id: "c1", function: { name: "f", arguments: "{}" } },
        extra_content: { google: { thought_signature: "sig" } },
      }),
      ended("tool_calls"),
    ],
  ],
  [
    "a signature before the name",
    [
      call({ index: 0, id: "c1", function: {}, extra_content: { google: { thought_signature: "sig" } } }),
      call({ index: 0, function: { name: "f", arguments: "{}" }, extra_content: { google: null } }),
    ],
  ],
  [
    "calls between texts",
    [chunk({ content: "a" }), call({ index: 0, function: { name: "f" } }), chunk({ content: "b" })],
  ],
])("chunks with %s", async (_, lines) => {
  await expectSame([encoder.encode(events(lines))]);
});

const A = chunk({ content: "ä€😀" });

test.each<[string, string]>([
  ["CRLF", `data: ${A}\r\n\r\ndata: ${END}\r\n\r\n`],
  ["CR", `data: ${A}\r\rdata: ${END}\r\r\n`],
  ["mixed line ends", `data: ${A}\r\n\ndata: ${END}\n\r\n`],
  ["no space after the colon", `data:${A}\n\ndata:${END}\n\n`],
  ["data on several lines", `data: ${A.slice(0, 1)}\ndata: ${A.slice(1)}\n\ndata: ${END}\n\n`],
  [
    "comments and other fields",
    `: hi\nevent: x\nid: 1\nretry: 5\ndata: ${A}\nother: 1\n\n:\n\ndata: ${END}\n\n`,
  ],
  ["a field without a colon", `data\n\ndata: ${END}\n\n`],
  ["a byte order mark", `\uFEFFdata: ${A}\n\ndata: ${END}\n\n`],
  ["two byte order marks", `\uFEFF\uFEFFdata: ${A}\n\ndata: ${END}\n\n`],
  ["an event that is cut off", `data: ${END}\n\ndata: ${A}\n`],
  ["no events", "hello"],
  ["blank lines", `\n\n\ndata: ${END}\n\n\n\n`],
])("an event stream with %s, split at every byte", async (_, text) => {
  const bytes = encoder.encode(text);
  await expectSame([bytes]);
  await expectSame(Array.from(bytes, (byte) => Uint8Array.of(byte)));
});

test("bytes that are no UTF-8", async () => {
  const [before = "", after = ""] = events([chunk({ content: "a|b" }), END]).split("|");
  await expectSame([encoder.encode(before), Uint8Array.of(0xff, 0xe2, 0x82), encoder.encode(after)]);
});

/** Values of the right types and of wrong ones. */
const junk = fc.constantFrom(undefined, null, "", "a", 0, 1.5, true, [], {}, [{}], ["a"]);
const textOr = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "binary", maxLength: 6 }) },
  { weight: 1, arbitrary: junk },
);
const optional = <T extends object>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record<T>(members, { requiredKeys: [] });

const toolCall = optional({
  index: fc.constantFrom(0, 1, 2, null),
  id: fc.constantFrom("a", "b", "", null),
  function: fc.oneof(
    {
      weight: 6,
      arbitrary: optional({
        name: fc.constantFrom("f", "g", " ", null),
        arguments: fc.constantFrom("{", "}", "{}", "[1", '"', "", null),
      }),
    },
    { weight: 1, arbitrary: junk },
  ),
  extra_content: fc.constantFrom(null, {}, { google: null }, { google: { thought_signature: "s" } }, 1),
});
const content = fc.oneof(
  { weight: 4, arbitrary: textOr },
  fc.array(
    optional({
      type: fc.constantFrom("text", "thinking", "x"),
      text: textOr,
      thinking: fc.oneof(textOr, fc.array(optional({ type: fc.constantFrom("text", "x"), text: textOr }))),
    }),
    { maxLength: 2 },
  ),
);
const delta = optional({
  role: fc.constantFrom("assistant", "", "user", null, 1),
  content,
  refusal: fc.oneof(fc.constant(null), junk),
  reasoning_content: textOr,
  reasoning: textOr,
  tool_calls: fc.oneof(fc.array(toolCall, { maxLength: 3 }), junk),
});
const details = fc.oneof(
  optional({ cached_tokens: junk, reasoning_tokens: fc.nat(), accepted_prediction_tokens: fc.nat() }),
  junk,
);
const usage = fc.oneof(
  optional({
    prompt_tokens: fc.nat(),
    completion_tokens: fc.nat(),
    prompt_tokens_details: details,
    completion_tokens_details: details,
    x: junk,
  }),
  junk,
);
const anyChunk = optional({
  id: textOr,
  created: fc.oneof(fc.nat(), junk),
  model: textOr,
  usage,
  error: fc.oneof(junk, optional({ message: textOr, code: junk, type: junk, x: junk })),
  choices: fc.oneof(
    {
      weight: 8,
      arbitrary: fc.array(
        optional({ delta, finish_reason: fc.constantFrom(null, "stop", "tool_calls", 1) }),
        { maxLength: 2 },
      ),
    },
    { weight: 1, arbitrary: junk },
  ),
});
const plainChunk = fc.record({ choices: fc.tuple(fc.record({ delta })) });
const line = fc.oneof(
  { weight: 8, arbitrary: fc.oneof(plainChunk, anyChunk).map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: fc.constantFrom("", "{", "[DONE]", "null", END, USAGE) },
);
const framed = fc
  .tuple(line, fc.constantFrom("\n", "\r\n", "\r"), fc.constantFrom("", ": hi", "event: x", "data: "))
  .map(([data, lineEnd, before]) => [before, `data: ${data}`, "", ""].join(lineEnd));

test("any chunks, in any frames, split anywhere", async () => {
  const property = fc.asyncProperty(
    fc.array(framed, { maxLength: 6 }),
    fc.array(fc.nat({ max: 400 }), { maxLength: 8 }),
    async (frames, sizes) => {
      const bytes = encoder.encode(`${frames.join("")}data: ${END}\n\n`);
      const parts: Uint8Array[] = [];
      let start = 0;
      for (const size of sizes) {
        parts.push(bytes.slice(start, start + size));
        start += size;
      }
      await expectSame([...parts, bytes.slice(start)]);
    },
  );
  await fc.assert(property, { numRuns: 300 });
});

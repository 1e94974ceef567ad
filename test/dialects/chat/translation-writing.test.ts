/** Answers of other providers' models as chat completions. */
import { expect, test } from "bun:test";
import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import fc from "fast-check";
import { ChatStreamReader } from "../../../src/dialects/chat/stream.ts";
import { CHAT_TRANSLATION } from "../../../src/dialects/chat/translation/translation.ts";
import type { TranslationTarget } from "../../../src/dialects/translation/translation.ts";

const TARGET: TranslationTarget = { provider: "gemini", kind: "google", supportedUrls: {} };
const HEAD = { id: "1", model: "gemini/m", created: 1 };
const NO_USAGE: LanguageModelV4Usage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};
const USAGE: LanguageModelV4Usage = {
  inputTokens: { total: 10, noCache: 6, cacheRead: 4, cacheWrite: undefined },
  outputTokens: { total: 5, text: 2, reasoning: 3 },
};

function writer(value: object = {}) {
  return CHAT_TRANSLATION.writer(value, TARGET, HEAD);
}

function result(
  content: LanguageModelV4Content[],
  unified: LanguageModelV4FinishReason["unified"] = "stop",
  usage = USAGE,
): LanguageModelV4GenerateResult {
  return { content, finishReason: { unified, raw: undefined }, usage, warnings: [] };
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what clients read.
const whole = (...given: Parameters<typeof result>): any => writer().whole(result(...given));

test.each([
  ["stop", "stop"],
  ["length", "length"],
  ["content-filter", "content_filter"],
  ["other", "stop"],
] as const)("the ending %s is %s", (unified, expected) => {
  expect(whole([{ type: "text", text: "x" }], unified).choices[0].finish_reason).toBe(expected);
});

test("the usage is the provider's, with cached and reasoning tokens, or missing", () => {
  expect(whole([], "stop").usage).toEqual({
    ...{ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 3 },
  });
  expect(whole([], "stop", NO_USAGE)).not.toHaveProperty("usage");
});

test("reasoning, sources and citations have their places, and the provider's own tools have none", () => {
  const source = {
    type: "source",
    sourceType: "url",
    id: "1",
    url: "https://a.example",
    title: "A",
  } as const;
  const { message } = whole([
    { type: "reasoning", text: "first" },
    { type: "reasoning", text: "second" },
    { type: "tool-call", toolCallId: "0", toolName: "own", input: "{}", providerExecuted: true },
    { type: "text", text: "Yes.", citations: [{ source, startIndex: 0, endIndex: 4 }] },
    { ...source, url: "https://b.example" },
    { type: "source", sourceType: "document", id: "2", mediaType: "text/plain", title: "D" },
  ]).choices[0];
  expect(message).toEqual({
    ...{ role: "assistant", content: "Yes.", refusal: null, reasoning_content: "first\nsecond" },
    annotations: [
      {
        type: "url_citation",
        url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 4 },
      },
      {
        type: "url_citation",
        url_citation: { url: "https://b.example", title: "A", start_index: 0, end_index: 0 },
      },
    ],
  });
});

test("parallel calls whose parts arrive interleaved keep their indexes", () => {
  const { part } = writer();
  const parts: LanguageModelV4StreamPart[] = [
    { type: "tool-input-start", id: "a", toolName: "f" },
    { type: "tool-input-start", id: "b", toolName: "g" },
    { type: "tool-input-delta", id: "b", delta: '{"b"' },
    { type: "tool-input-delta", id: "a", delta: '{"a":1}' },
    { type: "tool-input-delta", id: "b", delta: ":2}" },
    { type: "tool-call", toolCallId: "a", toolName: "f", input: '{"a":1}' },
    { type: "tool-call", toolCallId: "b", toolName: "g", input: '{"b":2}' },
    { type: "tool-call", toolCallId: "c", toolName: "h", input: "{}" },
  ];
  const calls = chunksOf(parts.map(part).join("")).flatMap(
    ({ choices }) => choices[0].delta.tool_calls ?? [],
  );
  const arguments_ = new Map<number, string>();
  for (const { index, function: called } of calls) {
    arguments_.set(index, (arguments_.get(index) ?? "") + (called.arguments ?? ""));
  }
  expect([...arguments_]).toEqual([
    [0, '{"a":1}'],
    [1, '{"b":2}'],
    [2, "{}"],
  ]);
  expect(calls.filter(({ id }) => id !== undefined).map(({ id, index }) => [id, index])).toEqual([
    ["a", 0],
    ["b", 1],
    ["c", 2],
  ]);
});

// biome-ignore lint/suspicious/noExplicitAny: a test reads what clients read.
function chunksOf(events: string): any[] {
  return events
    .split("\n\n")
    .filter((event) => event !== "" && event !== "data: [DONE]")
    .map((event) => JSON.parse(event.replace("data: ", "")));
}

test("an error from the model is thrown, and a file is refused", () => {
  const error = new Error("boom");
  expect(() => writer().part({ type: "error", error })).toThrow(error);
  const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "AA" } } as const;
  expect(() => writer().part(file)).toThrow("a chat completion cannot carry");
  expect(() => writer().whole(result([file]))).toThrow("a chat completion cannot carry");
});

test("signed thoughts travel with the call that they led to, whole and streamed, to the same kind of provider", () => {
  const claude: TranslationTarget = { provider: "claude", kind: "anthropic", supportedUrls: {} };
  const signature = { anthropic: { signature: "c2ln" } };
  const call = { type: "tool-call", toolCallId: "1", toolName: "f", input: "{}" } as const;
  const { whole: write, part } = CHAT_TRANSLATION.writer({}, claude, HEAD);
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what clients read.
  const written: any = write(
    result([{ type: "reasoning", text: "I need f.", providerMetadata: signature }, call], "tool-calls"),
  );
  const parts: LanguageModelV4StreamPart[] = [
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "I need " },
    { type: "reasoning-delta", id: "r", delta: "f." },
    { type: "reasoning-delta", id: "r", delta: "", providerMetadata: signature },
    { type: "reasoning-end", id: "r" },
    { type: "tool-input-start", id: "1", toolName: "f" },
    call,
  ];
  const [streamed] = chunksOf(parts.map(part).join("")).flatMap(
    ({ choices }) => choices[0].delta.tool_calls ?? [],
  );
  const { message } = written.choices[0];
  expect(streamed.extra_content).toEqual(message.tool_calls[0].extra_content);
  const back = (target: TranslationTarget) =>
    CHAT_TRANSLATION.options({ messages: [{ role: "user", content: "hi" }, message] }, target).prompt.at(-1)
      ?.content;
  expect<unknown>(back(claude)).toEqual([
    { type: "reasoning", text: "I need f.", providerOptions: signature },
    { type: "tool-call", toolCallId: "1", toolName: "f", input: {} },
  ]);
  expect(back(TARGET)).toHaveLength(1);
});

test("a signature that arrives only at the end of a call is sent", () => {
  const { part } = writer();
  const providerMetadata = { google: { thoughtSignature: "c2ln" } };
  const parts: LanguageModelV4StreamPart[] = [
    { type: "tool-input-start", id: "1", toolName: "f" },
    { type: "tool-input-delta", id: "1", delta: "{}" },
    { type: "tool-call", toolCallId: "1", toolName: "f", input: "{}", providerMetadata },
  ];
  const calls = chunksOf(parts.map(part).join("")).flatMap(
    ({ choices }) => choices[0].delta.tool_calls ?? [],
  );
  expect(calls.at(-1)).toEqual({
    index: 0,
    extra_content: { google: { thought_signature: expect.stringMatching(/^gth1\./) } },
  });
});

const texts = fc.string({ minLength: 1, unit: "grapheme" });
const calls = fc.record({
  toolCallId: fc.uuid(),
  toolName: fc.constantFrom("f", "g"),
  input: fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
  signed: fc.boolean(),
});
const answers = fc.record({
  text: fc.option(texts),
  reasoning: fc.option(texts),
  calls: fc.array(calls, { maxLength: 3 }),
});
type Answer = typeof answers extends fc.Arbitrary<infer Value> ? Value : never;

function contentOf({ text, reasoning, calls: called }: Answer): LanguageModelV4Content[] {
  return [
    ...(reasoning === null ? [] : [{ type: "reasoning" as const, text: reasoning }]),
    ...(text === null ? [] : [{ type: "text" as const, text }]),
    ...called.map(({ signed, ...call }) => ({
      ...{ type: "tool-call" as const, ...call },
      ...(signed ? { providerMetadata: { google: { thoughtSignature: `s${call.toolCallId}` } } } : {}),
    })),
  ];
}

test("an answer that a client returns reaches the provider unchanged, except for its reasoning", () => {
  fc.assert(
    fc.property(answers, (answer) => {
      const content = contentOf(answer);
      const { message } = whole(content).choices[0];
      const messages = [{ role: "user", content: "hi" }, message];
      const { prompt } = CHAT_TRANSLATION.options({ messages }, TARGET);
      const expected = content.flatMap<unknown>((part) => {
        if (part.type !== "tool-call") return part.type === "text" ? [part] : [];
        const { providerMetadata, input, ...call } = part;
        const signed = providerMetadata ? { providerOptions: providerMetadata } : {};
        return [{ ...call, input: JSON.parse(input), ...signed }];
      });
      expect<unknown>(prompt.at(-1)).toEqual({ role: "assistant", content: expected });
    }),
  );
});

/** The parts of a stream with an answer, each of its texts in pieces. */
function* partsOf({ text, reasoning, calls: called }: Answer): Generator<LanguageModelV4StreamPart> {
  const pieces = (whole: string) => [whole.slice(0, 1), "", whole.slice(1)];
  yield { type: "stream-start", warnings: [] };
  if (reasoning !== null) {
    yield { type: "reasoning-start", id: "r" };
    for (const delta of pieces(reasoning)) yield { type: "reasoning-delta", id: "r", delta };
    yield { type: "reasoning-end", id: "r" };
  }
  if (text !== null) {
    yield { type: "text-start", id: "t" };
    for (const delta of pieces(text)) yield { type: "text-delta", id: "t", delta };
    yield { type: "text-end", id: "t" };
  }
  for (const [index, { toolCallId, toolName, input }] of called.entries()) {
    if (index % 2 === 0) {
      yield { type: "tool-input-start", id: toolCallId, toolName };
      for (const delta of pieces(input)) yield { type: "tool-input-delta", id: toolCallId, delta };
      yield { type: "tool-input-end", id: toolCallId };
    }
    yield { type: "tool-call", toolCallId, toolName, input };
  }
  const unified = called.length > 0 ? "tool-calls" : "stop";
  yield { type: "finish", finishReason: { unified, raw: undefined }, usage: USAGE };
}

test("a streamed answer has the same content as the whole one", async () => {
  await fc.assert(
    fc.asyncProperty(answers, fc.boolean(), async (answer, include_usage) => {
      const { part } = writer({ stream_options: { include_usage } });
      const events = [...partsOf(answer)].map(part).join("");
      expect(events.endsWith("data: [DONE]\n\n")).toBe(true);
      const unsigned = { ...answer, calls: answer.calls.map((call) => ({ ...call, signed: false })) };
      const { choices, usage } = whole(contentOf(unsigned), answer.calls.length > 0 ? "tool-calls" : "stop");
      const { message, finish_reason } = choices[0];
      const read = await new ChatStreamReader(true, 1).answerOf(Buffer.from(events), () => undefined);
      const merged = JSON.parse(read.text);
      expect(read.isWhole).toBe(true);
      expect(merged.choices[0].finish_reason).toBe(finish_reason);
      expect(merged.usage).toEqual(include_usage ? usage : undefined);
      const { refusal: _, content, ...rest } = message;
      expect(merged.choices[0].message).toEqual({ ...rest, ...(content ? { content } : {}) });
    }),
  );
});

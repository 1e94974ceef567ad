/** Responses of models whose providers speak another dialect: how requests are read and answers written. */
import { describe, expect, test } from "bun:test";
import type {
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import fc from "fast-check";
import { Problem } from "../../../src/base/errors.ts";
import { RESPONSES_TRANSLATION } from "../../../src/dialects/responses/translation/translation.ts";
import { packSignature } from "../../../src/dialects/translation/signatures.ts";
import type { TranslationTarget } from "../../../src/dialects/translation/translation.ts";

const ANTHROPIC: TranslationTarget = {
  ...{ provider: "claude", kind: "anthropic" },
  supportedUrls: { "image/*": [/^https:\/\/images\.test\//] },
};
const GOOGLE: TranslationTarget = { provider: "gemini", kind: "google", supportedUrls: {} };
const COMPATIBLE: TranslationTarget = { provider: "up", kind: "openai-compatible", supportedUrls: {} };

const read = (more: object, target = ANTHROPIC) =>
  RESPONSES_TRANSLATION.options({ model: "x", input: "Good morning", ...more }, target);
const user = (...content: object[]) => ({ input: [{ role: "user", content }] });
const CALL = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };

describe("a field that cannot be translated is refused by path:", () => {
  const REFUSED: [path: string, request: object, target?: TranslationTarget][] = [
    ["novelty", { novelty: 1 }],
    ["prompt", { prompt: { id: "pmpt_1" } }],
    ["truncation", { truncation: "auto" }],
    ["top_logprobs", { top_logprobs: 3 }],
    ["max_tool_calls", { max_tool_calls: 3 }],
    ["include[1]", { include: ["reasoning.encrypted_content", "file_search_call.results"] }],
    ["text.verbosity", { text: { verbosity: "low" } }],
    ["text.novelty", { text: { novelty: 1 } }],
    ["text.format.type", { text: { format: { type: "grammar" } } }],
    ["reasoning.novelty", { reasoning: { novelty: 1 } }],
    ["parallel_tool_calls", { parallel_tool_calls: false }, GOOGLE],
    ["tools[1].type", { tools: [{ type: "function", name: "f" }, { type: "web_search" }] }],
    ["tools[0].defer_loading", { tools: [{ type: "function", name: "f", defer_loading: true }] }],
    [
      "tools[0].tools[0].type",
      { tools: [{ type: "namespace", name: "n", tools: [{ type: "custom", name: "f" }] }] },
    ],
    [
      "tools[1].tools[0].name",
      {
        tools: [
          { type: "function", name: "n__f" },
          { type: "namespace", name: "n", tools: [{ type: "function", name: "f" }] },
        ],
      },
    ],
    [
      "tools[0].tools[0].name",
      {
        tools: [
          { type: "namespace", name: "n".repeat(40), tools: [{ type: "function", name: "f".repeat(30) }] },
        ],
      },
    ],
    ["tool_choice.type", { tool_choice: { type: "allowed_tools", tools: [] } }],
    ["input[0].type", { input: [{ type: "web_search_call", id: "ws_1" }] }],
    ["input[0].type", { input: [{ type: "custom_tool_call", call_id: "c", name: "f", input: "x" }] }],
    ["input[0].type", { input: [{ id: "msg_1" }] }],
    ["input[0].role", { input: [{ role: "tool", content: "x" }] }],
    ["input[0].novelty", { input: [{ role: "user", content: "x", novelty: 1 }] }],
    ["input[0].content[0].type", user({ type: "input_audio", data: "" })],
    ["input[0].content[0].file_id", user({ type: "input_image", file_id: "file_1" })],
    ["input[0].content[0].file_id", user({ type: "input_file", file_id: "file_1" })],
    [
      "input[0].content[0].detail",
      user({ type: "input_image", image_url: "data:image/png;base64,AA==", detail: "low" }),
    ],
    [
      "input[0].content[0].image_url",
      user({ type: "input_image", image_url: "http://169.254.169.254/x.png" }),
    ],
    [
      "input[0].content[0].image_url",
      user({ type: "input_image", image_url: "https://images.test/x.png" }),
      GOOGLE,
    ],
    ["input[0].content[0].file_url", user({ type: "input_file", file_url: "https://images.test/x.pdf" })],
    [
      "input[1].output[0].image_url",
      {
        input: [
          CALL,
          {
            ...{ type: "function_call_output", call_id: "c1" },
            output: [{ type: "input_image", image_url: "https://images.test/x.png" }],
          },
        ],
      },
    ],
  ];
  test.each(REFUSED.map(([path, request, target = ANTHROPIC]) => [path, request, target] as const))(
    "%s",
    (...[path, request, target]) => {
      const refusal = (() => {
        try {
          return read(request, target);
        } catch (error) {
          return error;
        }
      })();
      expect(refusal).toBeInstanceOf(Problem);
      const { code, message } = refusal as Problem;
      expect([code, message.split(" ")[0]]).toEqual(["unsupported_parameter", path]);
    },
  );

  test.each<[string, object]>([
    ["no input", { input: undefined }],
    ["input without a message", { input: [] }],
    [
      "a result of an unknown call",
      { input: [{ type: "function_call_output", call_id: "c9", output: "x" }] },
    ],
    ["an effort that does not exist", { reasoning: { effort: "extreme" } }],
  ])("but %s is not valid", (_, request) => {
    expect(() => read(request)).toThrow(expect.objectContaining({ code: "validation_failed" }));
  });
});

test("hints and values that have no effect are left out", () => {
  const hints = {
    ...{
      service_tier: "flex",
      prompt_cache_key: "k",
      client_metadata: { a: "b" },
      stream: true,
      store: false,
    },
    ...{ truncation: "disabled", include: ["reasoning.encrypted_content"], metadata: { a: "b" } },
    ...{
      stream_options: { include_obfuscation: false },
      tools: [],
      parallel_tool_calls: true,
      background: false,
    },
  };
  expect(read({ ...hints, ...{ previous_response_id: null } }, GOOGLE)).toEqual(read({}, GOOGLE));
});

test("a request becomes a call", () => {
  const schema = { type: "object", properties: {} };
  const options = read({
    ...{ instructions: "Be brief", max_output_tokens: 9, temperature: 0.5, top_p: 0.9 },
    ...{ reasoning: { effort: "high" }, parallel_tool_calls: false, user: "u".repeat(65) },
    text: { format: { type: "json_schema", name: "answer", schema, strict: true } },
    tools: [
      { type: "function", name: "f", description: "d", parameters: schema, strict: true },
      {
        type: "namespace",
        name: "n",
        description: "N",
        tools: [{ type: "function", name: "g", description: "G" }],
      },
    ],
    tool_choice: { type: "function", name: "f" },
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Be kind" }] },
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: "data:image/png;base64,AA==", detail: "auto" },
          { type: "input_image", image_url: "https://images.test/x.png" },
          { type: "input_file", file_data: "data:application/pdf;base64,AA==", filename: "x.pdf" },
        ],
      },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "One", annotations: [] }],
      },
      { ...CALL, namespace: "n", name: "g" },
      { ...CALL, call_id: "c2", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "c2", output: "two" },
      { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "one" }] },
    ],
  });
  expect(options).toMatchObject({
    ...{ maxOutputTokens: 9, temperature: 0.5, topP: 0.9, reasoning: "high" },
    responseFormat: { type: "json", name: "answer", schema },
    tools: [
      { type: "function", name: "f", description: "d", inputSchema: schema, strict: true },
      { type: "function", name: "n__g", description: "N\n\nG" },
    ],
    toolChoice: { type: "tool", toolName: "f" },
    providerOptions: {
      anthropic: {
        disableParallelToolUse: true,
        metadata: { userId: expect.stringMatching(/^[0-9a-f]{64}$/) },
      },
    },
    prompt: [
      { role: "system", content: "Be brief" },
      { role: "system", content: "Be kind" },
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "file", mediaType: "image/png", data: { type: "data", data: "AA==" } },
          { type: "file", mediaType: "image/png", data: { type: "url" } },
          { type: "file", mediaType: "application/pdf", filename: "x.pdf" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "One" },
          { type: "tool-call", toolCallId: "c1", toolName: "n__g", input: {} },
          { type: "tool-call", toolCallId: "c2", toolName: "f", input: { a: 1 } },
        ],
      },
      {
        role: "tool",
        content: [
          { toolCallId: "c2", toolName: "f", output: { type: "text", value: "two" } },
          {
            toolCallId: "c1",
            toolName: "n__g",
            output: { type: "content", value: [{ type: "text", text: "one" }] },
          },
        ],
      },
    ],
  });
  expect(read({ parallel_tool_calls: false }, COMPATIBLE).providerOptions).toMatchObject({
    up: { parallel_tool_calls: false },
  });
});

test("reasoning of another kind of provider, or without a signature, is left out", () => {
  const signed = packSignature(GOOGLE, { google: { thoughtSignature: "s" } });
  const items = [undefined, "sealed by OpenAI", signed].map((encrypted_content) => ({
    ...{ type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }], encrypted_content },
  }));
  const { prompt } = read({ input: [{ role: "user", content: "x" }, ...items] });
  expect(prompt).toHaveLength(1);
});

const HEAD = { id: "0".repeat(26), model: "claude/x", created: 1_790_000_000 };
const USAGE: LanguageModelV4Usage = {
  inputTokens: { total: 9, noCache: 5, cacheRead: 4, cacheWrite: undefined },
  outputTokens: { total: 3, text: 2, reasoning: 1 },
};
const STOP = { unified: "stop", raw: "stop" } as const;

const content = (target: TranslationTarget) => {
  const signature =
    target.kind === "google" ? { google: { thoughtSignature: "s" } } : { anthropic: { signature: "s" } };
  const text = fc.string({ minLength: 1 }).map((value) => ({ type: "text" as const, text: value }));
  const reasoning = fc
    .string({ minLength: 1 })
    .map((value) => ({ type: "reasoning" as const, text: value, providerMetadata: signature }));
  const call = fc.record({
    name: fc.constantFrom("f", "n__g"),
    input: fc.dictionary(fc.string(), fc.jsonValue()),
  });
  const parts = fc.array(fc.oneof(text, reasoning, call), { minLength: 1, maxLength: 8 });
  return parts.map((given): LanguageModelV4Content[] =>
    given.map((part, index) =>
      "name" in part
        ? {
            ...{
              type: "tool-call",
              toolCallId: `c${index}`,
              toolName: part.name,
              input: JSON.stringify(part.input),
            },
            ...(target.kind === "google" ? { providerMetadata: signature } : {}),
          }
        : part,
    ),
  );
};
const REQUEST = {
  ...{ model: "x", input: "x" },
  tools: [
    { type: "function", name: "f" },
    { type: "namespace", name: "n", tools: [{ type: "function", name: "g" }] },
  ],
};

/** The content as a provider streams it, with the parts of all blocks interleaved. */
function streamed(
  parts: readonly LanguageModelV4Content[],
  interleave: boolean,
): LanguageModelV4StreamPart[] {
  const blocks = parts.map((part, index): LanguageModelV4StreamPart[] => {
    const id = String(index);
    if (part.type === "text") {
      const [first, rest] = [part.text.slice(0, 1), part.text.slice(1)];
      return [
        { type: "text-start", id },
        { type: "text-delta", id, delta: first },
        { type: "text-delta", id, delta: rest },
        { type: "text-end", id },
      ];
    }
    if (part.type === "reasoning") {
      const { text, providerMetadata = {} } = part;
      return [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: text },
        { type: "reasoning-end", id, providerMetadata },
      ];
    }
    if (part.type !== "tool-call") return [];
    const { toolCallId, toolName, input, providerMetadata = {} } = part;
    return [
      { type: "tool-input-start", id: toolCallId, toolName, providerMetadata },
      { type: "tool-input-delta", id: toolCallId, delta: input.slice(0, 2) },
      { type: "tool-input-delta", id: toolCallId, delta: input.slice(2) },
      { type: "tool-input-end", id: toolCallId },
      part,
    ];
  });
  const isCalls = parts.every(({ type }) => type === "tool-call");
  const all =
    interleave && isCalls
      ? Array.from({ length: 5 }, (_, step) => blocks.flatMap((block) => block.slice(step, step + 1))).flat()
      : blocks.flat();
  return [
    { type: "stream-start", warnings: [] },
    ...all,
    { type: "finish", finishReason: STOP, usage: USAGE },
  ];
}

interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly output_index: number;
  readonly delta: string;
}

function eventsOf(text: string): Event[] {
  return text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      const [name, data = ""] = event.split("\n");
      const parsed = JSON.parse(data.slice("data: ".length)) as Event;
      expect(name).toBe(`event: ${parsed.type}`);
      return parsed;
    });
}

describe.each([
  ["anthropic", ANTHROPIC],
  ["google", GOOGLE],
])("an answer of %s", (_, target) => {
  const written = (parts: LanguageModelV4Content[]) =>
    RESPONSES_TRANSLATION.writer(REQUEST, target, HEAD).whole({
      ...{ content: parts, finishReason: STOP, usage: USAGE, warnings: [] },
    }) as Record<string, unknown> & { output: Record<string, unknown>[] };

  test("is returned as the same conversation", () => {
    fc.assert(
      fc.property(content(target), (parts) => {
        const { output } = written(parts);
        const { prompt } = read({ input: [{ role: "user", content: "x" }, ...output] }, target);
        const [, assistant, ...more] = prompt;
        expect(more).toEqual([]);
        const expected: object[] = [];
        for (const part of parts) {
          const last = expected.at(-1) as { type: string; text: string } | undefined;
          if (part.type === "text" && last?.type === "text") last.text += part.text;
          else if (part.type === "tool-call") {
            const { toolCallId, toolName, input, providerMetadata } = part;
            const signed = providerMetadata ? { providerOptions: providerMetadata } : {};
            expected.push({ type: "tool-call", toolCallId, toolName, input: JSON.parse(input), ...signed });
          } else if (part.type === "reasoning") {
            expected.push({ type: "reasoning", text: part.text, providerOptions: part.providerMetadata });
          } else expected.push({ ...part });
        }
        expect(assistant).toEqual({ role: "assistant", content: expected as never });
      }),
    );
  });

  test("is the same whole and streamed, in a stream that clients can read", () => {
    fc.assert(
      fc.property(content(target), fc.boolean(), (parts, interleave) => {
        const writer = RESPONSES_TRANSLATION.writer(REQUEST, target, HEAD);
        const events = eventsOf(
          streamed(parts, interleave)
            .map((part) => writer.part(part))
            .join(""),
        );
        expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
        expect(events.slice(0, 2).map(({ type }) => type)).toEqual([
          "response.created",
          "response.in_progress",
        ]);
        expect(events.at(-1)).toMatchObject({ type: "response.completed", response: written(parts) });
        // One item after the other, each between its first and its last event, and deltas in between.
        let open: number | null = null;
        let next = 0;
        const texts = new Map<number, string>();
        for (const event of events.slice(2, -1)) {
          if (event.type === "response.output_item.added") {
            expect([open, event.output_index]).toEqual([null, next]);
            open = next++;
          } else expect(event.output_index).toBe(open as number);
          if (event.type.endsWith(".delta")) {
            texts.set(event.output_index, (texts.get(event.output_index) ?? "") + event.delta);
          }
          if (event.type === "response.output_item.done") open = null;
        }
        expect(open).toBeNull();
        for (const [index, item] of written(parts).output.entries()) {
          const said =
            (item.arguments as string | undefined) ??
            ((item.content ?? item.summary) as { text: string }[]).map((part) => part.text).join("");
          expect(texts.get(index) ?? "").toBe(said);
        }
      }),
    );
  });
});

test("an answer that was cut off is incomplete", () => {
  const ends = [
    ["length", "max_output_tokens"],
    ["content-filter", "content_filter"],
  ] as const;
  for (const [unified, reason] of ends) {
    const writer = RESPONSES_TRANSLATION.writer(REQUEST, ANTHROPIC, HEAD);
    const parts: LanguageModelV4StreamPart[] = [
      { type: "text-delta", id: "0", delta: "x" },
      { type: "tool-input-start", id: "c1", toolName: "f" },
      { type: "tool-input-delta", id: "c1", delta: '{"a' },
      { type: "finish", finishReason: { unified, raw: undefined }, usage: USAGE },
    ];
    const last = eventsOf(parts.map((part) => writer.part(part)).join("")).at(-1);
    expect(last).toMatchObject({
      type: "response.incomplete",
      response: {
        ...{ status: "incomplete", incomplete_details: { reason } },
        output: [{ type: "message" }, { type: "function_call", status: "incomplete", arguments: '{"a' }],
        usage: {
          ...{
            input_tokens: 9,
            input_tokens_details: { cached_tokens: 4 },
            output_tokens: 3,
            total_tokens: 12,
          },
          output_tokens_details: { reasoning_tokens: 1 },
        },
      },
    });
  }
});

test("sources are shown with the text, and files are refused", () => {
  const source = { type: "source", sourceType: "url", id: "1", url: "https://a.test/" } as const;
  const { whole } = RESPONSES_TRANSLATION.writer(REQUEST, ANTHROPIC, HEAD);
  const answer = { finishReason: STOP, usage: USAGE, warnings: [] };
  const response = whole({ ...answer, content: [{ type: "text", text: "abc" }, source] });
  expect(response).toMatchObject({
    output: [
      {
        content: [
          { text: "abc", annotations: [{ type: "url_citation", url: "https://a.test/", end_index: 3 }] },
        ],
      },
    ],
  });
  const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "AA==" } } as const;
  expect(() => whole({ ...answer, content: [file] })).toThrow(Problem);
});

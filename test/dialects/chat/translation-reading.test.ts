/** Chat completions as calls to other providers' models: what is read, and what is refused. */
import { describe, expect, test } from "bun:test";
import { Problem } from "../../../src/base/errors.ts";
import { CHAT_TRANSLATION } from "../../../src/dialects/chat/translation/translation.ts";
import { packSignature } from "../../../src/dialects/translation/signatures.ts";
import type { TranslationTarget } from "../../../src/dialects/translation/translation.ts";

const CLAUDE: TranslationTarget = {
  ...{ provider: "claude", kind: "anthropic" },
  supportedUrls: { "image/*": [/^https?:\/\/.*$/] },
};
const GEMINI: TranslationTarget = {
  ...{ provider: "gemini", kind: "google" },
  supportedUrls: { "image/png": [/^https:\/\/.*$/] },
};
const USER = { role: "user", content: "hi" };

function read(fields: object, target = CLAUDE) {
  return CHAT_TRANSLATION.options({ model: "m", messages: [USER], ...fields }, target);
}

function problemOf(fields: object, target = CLAUDE): [string, string | undefined] {
  try {
    read(fields, target);
  } catch (error) {
    if (error instanceof Problem) return [error.code, error.errors?.[0]?.path];
    throw error;
  }
  return ["none", undefined];
}

const user = (...content: object[]) => ({ messages: [{ role: "user", content }] });
const image = (url: string, more = {}) => user({ type: "image_url", image_url: { url, ...more } });
const part = "/messages/0/content/0";

const UNSUPPORTED: [name: string, fields: object, path: string, target?: TranslationTarget][] = [
  ["an unknown field", { future_field: 1 }, "/future_field"],
  ["several answers", { n: 2 }, "/n"],
  ["log probabilities", { logprobs: true }, "/logprobs"],
  ["their number", { top_logprobs: 3 }, "/top_logprobs"],
  ["a bias", { logit_bias: { 50256: -100 } }, "/logit_bias"],
  ["storage at the provider", { store: true }, "/store"],
  ["metadata of stored responses", { metadata: { a: "b" } }, "/metadata"],
  ["audio answers", { modalities: ["text", "audio"] }, "/modalities"],
  ["a voice", { audio: { voice: "ash" } }, "/audio"],
  ["a prediction", { prediction: { type: "content", content: "x" } }, "/prediction"],
  ["a web search", { web_search_options: {} }, "/web_search_options"],
  ["functions in the form used before tools", { functions: [] }, "/functions"],
  ["another verbosity", { verbosity: "low" }, "/verbosity"],
  ["an unknown stream option", { stream_options: { future: 1 } }, "/stream_options/future"],
  [
    "one call at a time, where it is not supported",
    { parallel_tool_calls: false },
    "/parallel_tool_calls",
    GEMINI,
  ],
  ["one of the provider's own tools", { tools: [{ type: "web_search" }] }, "/tools/0/type"],
  ["a custom tool", { tools: [{ type: "custom", custom: { name: "x" } }] }, "/tools/0/type"],
  [
    "an unknown field of a tool",
    { tools: [{ type: "function", function: { name: "x", future: 1 } }] },
    "/tools/0/function/future",
  ],
  ["a choice among some tools", { tool_choice: { type: "allowed_tools" } }, "/tool_choice/type"],
  ["an unknown format", { response_format: { type: "grammar" } }, "/response_format/type"],
  ["a message with an unknown role", { messages: [{ role: "function", content: "x" }] }, "/messages/0/role"],
  ["a message's author", { messages: [{ ...USER, name: "ann" }] }, "/messages/0/name"],
  ["an unknown kind of content", user({ type: "video_url" }), `${part}/type`],
  [
    "a file in the provider's account",
    user({ type: "file", file: { file_id: "f" } }),
    `${part}/file/file_id`,
  ],
  ["an image's size", image("data:image/png;base64,AAAA", { detail: "high" }), `${part}/image_url/detail`],
  ["an address that nothing fetches", image("ftp://example.org/a.png"), `${part}/image_url/url`],
  ["an address of an unknown type", image("https://example.org/a"), `${part}/image_url/url`, GEMINI],
  [
    "an address in the provider's account",
    image("https://generativelanguage.googleapis.com/v1beta/files/a.png"),
    `${part}/image_url/url`,
    GEMINI,
  ],
  [
    "the same address in disguise",
    image("https://x@generativelanguage%2Egoogleapis.com:443/v1beta/files/a.png"),
    `${part}/image_url/url`,
    GEMINI,
  ],
  [
    "a picture in the instructions",
    { messages: [{ role: "system", content: [{ type: "image_url" }] }] },
    `${part}/type`,
  ],
  [
    "arguments that are not an object",
    {
      messages: [
        {
          role: "assistant",
          tool_calls: [{ id: "1", type: "function", function: { name: "x", arguments: "[1" } }],
        },
      ],
    },
    "/messages/0/tool_calls/0/function/arguments",
  ],
];

describe("refused by path, because a model of another provider would not see it:", () => {
  test.each(UNSUPPORTED)("%s", (_, fields, path, target = CLAUDE) => {
    expect(problemOf(fields, target)).toEqual(["unsupported_parameter", path]);
  });
});

test.each<[string, object, string]>([
  ["no messages", { messages: [] }, "/messages"],
  ["messages that are not a list", { messages: "hi" }, "/messages"],
  ["a temperature that is a text", { temperature: "hot" }, "/temperature"],
  ["an unknown effort", { reasoning_effort: "utmost" }, "/reasoning_effort"],
  ["a picture that is not base64", image("data:image/png;base64,%%"), `${part}/image_url/url`],
  [
    "a result that was not requested",
    { messages: [USER, { role: "tool", tool_call_id: "1", content: "x" }] },
    "/messages/1/tool_call_id",
  ],
])("%s is invalid", (_, fields, path) => {
  expect(problemOf(fields)).toEqual(["validation_failed", path]);
});

test("values that clients send by default have no effect, and hints may be left out", () => {
  const defaults = {
    ...{ n: 1, logprobs: false, store: false, logit_bias: {}, metadata: {}, modalities: ["text"] },
    ...{ presence_penalty: 0, frequency_penalty: 0, parallel_tool_calls: true, stop: null, tools: [] },
    ...{ service_tier: "flex", prompt_cache_key: "k", prompt_cache_retention: "24h", verbosity: "medium" },
    ...{ stream: true, stream_options: { include_usage: true, include_obfuscation: false } },
  };
  expect(read(defaults)).toEqual({ prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }] });
});

test("options are read", () => {
  const schema = { type: "object", properties: { a: { type: "string" } } };
  const options = read({
    ...{ max_tokens: 9, temperature: 0.5, top_p: 0.9, seed: 7, presence_penalty: 1, frequency_penalty: -1 },
    ...{ stop: "END", reasoning_effort: "high", user: "u".repeat(65), parallel_tool_calls: false },
    tools: [
      { type: "function", function: { name: "f", description: "d", parameters: schema, strict: true } },
    ],
    tool_choice: { type: "function", function: { name: "f" } },
    response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } },
  });
  expect(options).toMatchObject({
    ...{ maxOutputTokens: 9, temperature: 0.5, topP: 0.9, seed: 7, presencePenalty: 1, frequencyPenalty: -1 },
    ...{ stopSequences: ["END"], reasoning: "high" },
    tools: [{ type: "function", name: "f", description: "d", inputSchema: schema, strict: true }],
    toolChoice: { type: "tool", toolName: "f" },
    responseFormat: { type: "json", name: "n", schema },
    providerOptions: {
      anthropic: {
        disableParallelToolUse: true,
        metadata: { userId: expect.stringMatching(/^[0-9a-f]{64}$/) },
      },
    },
  });
  expect(read({ max_tokens: 1, max_completion_tokens: 2 }).maxOutputTokens).toBe(2);
});

test("a conversation with files and tools is read", () => {
  const metadata = { google: { thoughtSignature: "c2ln", forged: "x" } };
  const thought_signature = packSignature(GEMINI, metadata);
  const call = (id: string, args: string, more = {}) => ({
    ...{ id, type: "function", function: { name: `tool_${id}`, arguments: args }, ...more },
  });
  const messages = [
    { role: "developer", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image_url", image_url: { url: "data:image/PNG;charset=x;base64,AAAA", detail: "auto" } },
        { type: "image_url", image_url: { url: "https://example.org/b.png?x=1" } },
        { type: "input_audio", input_audio: { data: "BBBB", format: "mp3" } },
        { type: "file", file: { file_data: "data:application/pdf;base64,CCCC", filename: "c.pdf" } },
      ],
    },
    {
      ...{
        role: "assistant",
        content: "Let me see.",
        refusal: null,
        annotations: [],
        reasoning_content: "Hm.",
      },
      tool_calls: [call("1", '{"a":1}', { extra_content: { google: { thought_signature } } }), call("2", "")],
    },
    { role: "tool", tool_call_id: "2", content: "two" },
    { role: "tool", tool_call_id: "1", name: "tool_1", content: [{ type: "text", text: "one" }] },
  ];
  const data = (value: string) => ({ type: "data" as const, data: value });
  expect(read({ messages }, GEMINI).prompt).toEqual([
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "file", mediaType: "image/png", data: data("AAAA") },
        {
          type: "file",
          mediaType: "image/png",
          data: { type: "url", url: new URL("https://example.org/b.png?x=1") },
        },
        { type: "file", mediaType: "audio/mpeg", data: data("BBBB") },
        { type: "file", mediaType: "application/pdf", data: data("CCCC"), filename: "c.pdf" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Let me see." },
        {
          ...{ type: "tool-call", toolCallId: "1", toolName: "tool_1", input: { a: 1 } },
          // What a client has written into the packed text does not reach the provider.
          providerOptions: { google: { thoughtSignature: "c2ln" } },
        },
        { type: "tool-call", toolCallId: "2", toolName: "tool_2", input: {} },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "2", toolName: "tool_2", output: { type: "text", value: "two" } },
        { type: "tool-result", toolCallId: "1", toolName: "tool_1", output: { type: "text", value: "one" } },
      ],
    },
  ]);
});

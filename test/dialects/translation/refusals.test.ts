/** What providers of other kinds cannot be sent, and how a conversation fits their APIs. */
import { expect, test } from "bun:test";
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createGoogleVertex } from "@ai-sdk/google-vertex/edge";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4Prompt,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { Problem } from "../../../src/base/errors.ts";
import { fittingPrompt } from "../../../src/dialects/translation/fitting-prompt.ts";
import { requireMediaType } from "../../../src/dialects/translation/media-types.ts";
import { limitedOptions } from "../../../src/dialects/translation/refusals.ts";

type Kind = Parameters<typeof limitedOptions>[1]["kind"];
type Options = Partial<LanguageModelV4CallOptions>;

const PATHS = { topK: "top_k", seed: "seed", stopSequences: "stop", responseFormat: "response_format" };
const USER: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "Hello" }] }];

function limited(kind: Kind, options: Options, model = "m"): LanguageModelV4CallOptions {
  return limitedOptions({ prompt: USER, ...options }, { kind, model }, PATHS);
}

/** The path of the field that is refused. */
function refused(kind: Kind, options: Options, model?: string): string | undefined {
  try {
    limited(kind, options, model);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    expect(error.code).toBe("unsupported_parameter");
    return error.errors?.[0]?.path;
  }
  return undefined;
}

const SCHEMA = { type: "object" } as const;
const JSON_SCHEMA = { type: "json", schema: SCHEMA } as const;
const TOOL = { type: "function" as const, name: "look", inputSchema: SCHEMA };
const CALL = { toolCallId: "a", toolName: "look" };
const CALLED: LanguageModelV4Prompt = [
  ...USER,
  { role: "assistant", content: [{ type: "tool-call", ...CALL, input: {} }] },
  { role: "tool", content: [{ type: "tool-result", ...CALL, output: { type: "text", value: "x" } }] },
];

test("an option that would not reach a kind of provider is refused under the client's name for it", () => {
  const cases: readonly (readonly [Kind, Options, string])[] = [
    ["openai", { topK: 5 }, "/top_k"],
    ["openai", { seed: 7 }, "/seed"],
    ["openai", { stopSequences: ["END"] }, "/stop"],
    ["openai", { presencePenalty: 0.5 }, "/presencePenalty"],
    ["openai", { frequencyPenalty: -0.5 }, "/frequencyPenalty"],
    ["openai-compatible", { topK: 5 }, "/top_k"],
    ["anthropic", { seed: 0 }, "/seed"],
    ["anthropic", { presencePenalty: 1 }, "/presencePenalty"],
    ["anthropic", { frequencyPenalty: 1 }, "/frequencyPenalty"],
    ["anthropic", { temperature: 1.5 }, "/temperature"],
    ["anthropic", { temperature: 0.5, reasoning: "high" }, "/temperature"],
    ["anthropic", { temperature: 0.5, topP: 0.5 }, "/topP"],
    ["anthropic", { topP: 0.5, reasoning: "low" }, "/topP"],
    ["anthropic", { topK: 5, reasoning: "low" }, "/top_k"],
    ["anthropic", { responseFormat: { type: "json" } }, "/response_format"],
    ["bedrock", { responseFormat: { type: "json" } }, "/response_format"],
    ["bedrock", { seed: 0 }, "/seed"],
    ["bedrock", { temperature: 1.5 }, "/temperature"],
    ["bedrock", { prompt: CALLED }, "/tools"],
    ["bedrock", { prompt: CALLED, tools: [] }, "/tools"],
    ["bedrock", { prompt: CALLED, tools: [TOOL], toolChoice: { type: "none" } }, "/toolChoice"],
    ["bedrock", { tools: [TOOL], toolChoice: { type: "none" }, responseFormat: JSON_SCHEMA }, "/toolChoice"],
    ["builtin", { responseFormat: { type: "json", schema: SCHEMA } }, "/response_format"],
    ["builtin", { stopSequences: ["END"] }, "/stop"],
  ];
  for (const [kind, options, path] of cases) expect([kind, refused(kind, options)]).toEqual([kind, path]);
});

test("an option that reaches a kind of provider is left unchanged", () => {
  const cases: readonly (readonly [Kind, Options])[] = [
    ["openai", { temperature: 0.5, topP: 0.5, responseFormat: { type: "json" } }],
    ["openai-compatible", { seed: 1, stopSequences: ["END"], presencePenalty: 1, frequencyPenalty: 1 }],
    ["anthropic", { topK: 5, stopSequences: ["END"], temperature: 0.5 }],
    ["anthropic", { topK: 5, topP: 0.5, reasoning: "none" }],
    ["anthropic", { responseFormat: { type: "json", schema: SCHEMA }, reasoning: "high" }],
    ["bedrock", { temperature: 1, topP: 0.5, topK: 5, reasoning: "high" }],
    ["bedrock", { prompt: CALLED, tools: [TOOL] }],
    ["vertex", { topK: 5, seed: 1, presencePenalty: 1, frequencyPenalty: 1, temperature: 1.5 }],
    ["google", { topK: 5, seed: 1, stopSequences: ["END"], temperature: 1.5 }],
    ["builtin", { temperature: 0.5, seed: 1, responseFormat: { type: "text" } }],
  ];
  for (const [kind, options] of cases) expect(limited(kind, options)).toEqual({ prompt: USER, ...options });
});

test("a format is left out if the answer must be a tool call, which has no text", () => {
  const forced = { tools: [TOOL], toolChoice: { type: "required" } as const };
  for (const kind of ["anthropic", "bedrock", "google", "vertex"] as const) {
    expect(limited(kind, { ...forced, responseFormat: JSON_SCHEMA })).toEqual({ prompt: USER, ...forced });
  }
  const auto = { tools: [TOOL], toolChoice: { type: "auto" } as const, responseFormat: JSON_SCHEMA };
  expect(limited("bedrock", auto)).toEqual({ prompt: USER, ...auto });
});

test("values that clients send by default and that have no effect are left out", () => {
  const neutral = { temperature: 1, topP: 1, presencePenalty: 0, frequencyPenalty: 0, stopSequences: [] };
  expect(limited("openai", neutral)).toEqual({ prompt: USER });
  const { stopSequences, ...others } = neutral;
  expect(limited("anthropic", { ...others, reasoning: "high" })).toEqual({ prompt: USER, reasoning: "high" });
  expect(limited("anthropic", { stopSequences })).toEqual({ prompt: USER, stopSequences });
  // At Amazon, 1 is the default only for Anthropic's models.
  const hot = { temperature: 1, topP: 1 };
  expect(limited("bedrock", hot, "us.anthropic.claude-5")).toEqual({ prompt: USER });
  expect(limited("bedrock", hot, "amazon.nova-pro-v1:0")).toEqual({ prompt: USER, ...hot });
});

const MIDDLE: LanguageModelV4Prompt = [
  { role: "system", content: "Be brief." },
  { role: "system", content: "Be kind." },
  ...USER,
  { role: "system", content: "Now in French." },
  { role: "assistant", content: [{ type: "text", text: "Salut" }] },
  { role: "system", content: "Now in Greek." },
];

test("instructions in the middle stay if the API accepts them, and otherwise become user text", () => {
  for (const kind of ["openai", "openai-compatible", "anthropic", "builtin"] as const) {
    expect(fittingPrompt(MIDDLE, { kind })).toEqual(MIDDLE);
  }
  expect(fittingPrompt(MIDDLE, { kind: "google" })).toEqual([
    { role: "system", content: "Be brief." },
    { role: "system", content: "Be kind." },
    {
      role: "user",
      content: [
        { type: "text", text: "Hello" },
        { type: "text", text: "<system>\nNow in French.\n</system>" },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "Salut" }] },
    { role: "user", content: [{ type: "text", text: "<system>\nNow in Greek.\n</system>" }] },
  ]);
  const alone: LanguageModelV4Prompt = [{ role: "system", content: "Be brief." }];
  expect(fittingPrompt(alone, { kind: "google" })).toEqual(alone);
});

test("if tool results can only be texts, files follow in a user message, and errors are marked", () => {
  const image = { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBO" } } as const;
  const result = (toolCallId: string, output: object) =>
    ({ type: "tool-result", toolCallId, toolName: "read", output }) as never;
  const prompt: LanguageModelV4Prompt = [
    {
      role: "tool",
      content: [
        result("a", { type: "content", value: [{ type: "text", text: "One" }, image] }),
        result("b", { type: "error-text", value: "No such file" }),
        result("c", { type: "text", value: "Three" }),
      ],
    },
    ...USER,
  ];
  expect(fittingPrompt(prompt, { kind: "openai" })).toEqual(prompt);
  expect(fittingPrompt(prompt, { kind: "google" })).toEqual(prompt);
  expect(fittingPrompt(prompt, { kind: "openai-compatible" })).toEqual([
    {
      role: "tool",
      content: [
        result("a", { type: "text", value: "One\n(A file follows in the next message.)" }),
        result("b", { type: "error-json", value: { error: "No such file" } }),
        result("c", { type: "text", value: "Three" }),
      ],
    },
    {
      role: "user",
      content: [{ type: "text", text: "A file in the result of the tool call a:" }, image],
    },
    ...USER,
  ]);
});

/** Answers of each API, as short as its package accepts. */
const ANSWERS: Readonly<Record<string, object>> = {
  openai: {
    ...{ id: "resp_1", created_at: 1, model: "m", output: [], status: "completed" },
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  "openai-compatible": {
    choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  },
  anthropic: {
    ...{ type: "message", id: "msg_1", model: "m", content: [], stop_reason: "end_turn" },
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  google: { candidates: [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }] },
  bedrock: {
    output: { message: { role: "assistant", content: [{ text: "Hi" }] } },
    ...{ stopReason: "end_turn", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } },
  },
};

/** Models that have no limits of their own. */
const MODELS: readonly (readonly [Kind, string])[] = [
  ["openai", "gpt-4.1"],
  ["openai-compatible", "m"],
  ["anthropic", "claude-sonnet-4-5"],
  ["google", "gemini-3-pro-preview"],
  ["vertex", "gemini-3-pro-preview"],
  ["vertex", "gemini-2.5-flash"],
  ["bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"],
  ["bedrock", "anthropic.claude-3-haiku-20240307-v1:0"],
  ["bedrock", "us.amazon.nova-2-lite-v1:0"],
  ["bedrock", "meta.llama4-scout-17b-instruct-v1:0"],
];

/** The real packages. @param sent receives the body of each request */
function modelOf(kind: string, model: string, sent: string[]): LanguageModelV4 {
  const answers = ANSWERS[kind === "vertex" ? "google" : kind] ?? {};
  const send = async (_: unknown, init?: RequestInit) => {
    sent.push(String(init?.body));
    return Response.json(answers);
  };
  const answer: typeof fetch = Object.assign(send, { preconnect: () => {} });
  const settings = { apiKey: "k", fetch: answer };
  const baseURL = "http://127.0.0.1:1";
  if (kind === "openai") return createOpenAI(settings)(model);
  if (kind === "anthropic") return createAnthropic(settings)(model);
  if (kind === "google") return createGoogleGenerativeAI(settings)(model);
  if (kind === "vertex") return createGoogleVertex({ ...settings, baseURL })(model);
  if (kind === "bedrock") return createAmazonBedrock({ ...settings, baseURL, region: "us-east-1" })(model);
  return createOpenAICompatible({
    ...settings,
    baseURL,
    name: "up",
    supportsStructuredOutputs: true,
  }).chatModel(model);
}

/** The first option is the one under test. */
const SAMPLES: readonly Options[] = [
  { topK: 5 },
  { seed: 7 },
  { presencePenalty: 0.5 },
  { frequencyPenalty: 0.5 },
  { stopSequences: ["END"] },
  { temperature: 0.5 },
  { temperature: 1.5 },
  { temperature: -1 },
  { topP: 0.5 },
  { topP: 0.5, temperature: 0.5 },
  { responseFormat: { type: "json" } },
  { responseFormat: JSON_SCHEMA },
  { tools: [TOOL], prompt: CALLED },
  { toolChoice: { type: "none" }, tools: [TOOL] },
  { toolChoice: { type: "required" }, tools: [TOOL] },
  { toolChoice: { type: "required" }, tools: [TOOL], responseFormat: JSON_SCHEMA },
  { toolChoice: { type: "tool", toolName: "look" }, tools: [TOOL], responseFormat: JSON_SCHEMA },
];
/** Not for models without reasoning, which the packages report. */
const REASONING: readonly Options[] = [
  { temperature: 0.5, reasoning: "high" },
  { topP: 0.5, reasoning: "high" },
  { topK: 5, reasoning: "high" },
  { temperature: 0.5, reasoning: "none" },
];

test.each(MODELS)(
  "the table lists the options that %s's package leaves out for %s, reported or not",
  async (kind, name) => {
    const sent: string[] = [];
    const model = modelOf(kind, name, sent);
    const reasons = !/haiku-20240307|llama|gpt-4/.test(name);
    for (const sample of [...SAMPLES, ...(reasons ? REASONING : [])]) {
      const [option = ""] = Object.keys(sample);
      const given = { prompt: USER, ...sample };
      const isRefused = refused(kind, given, name) !== undefined;
      const options = isRefused ? given : limited(kind, given, name);
      const { [option]: _, ...others } = given as Options & Record<string, unknown>;
      await model.doGenerate({ prompt: USER, ...others });
      const { warnings } = await model.doGenerate(options);
      const isReported = warnings.some((each) => each.type === "unsupported" && each.feature === option);
      const isDropped = isReported || sent.at(-1) === sent.at(-2);
      expect([sample, isRefused]).toEqual([sample, isDropped]);
    }
  },
);

const MEDIA_TYPES = [
  ...["image/png", "image/bmp", "audio/wav", "audio/mpeg", "audio/ogg", "video/mp4", "application/pdf"],
  ...["text/plain", "text/csv", "application/json", "application/zip", "application/msword"],
];
const DATA = "QUJDREVGRw";

function isRefusedType(kind: Kind, mediaType: string): boolean {
  try {
    requireMediaType({ kind }, mediaType, "messages[0].content");
    return false;
  } catch (error) {
    expect(error).toMatchObject({
      ...{ code: "unsupported_parameter", errors: [{ path: "/messages/0/content" }] },
    });
    return true;
  }
}

test.each(MODELS)(
  "files that %s's package refuses or leaves out for %s are refused by type",
  async (kind, name) => {
    const sent: string[] = [];
    const model = modelOf(kind, name, sent);
    for (const mediaType of MEDIA_TYPES) {
      const part = { type: "file", mediaType, data: { type: "data", data: DATA } } as const;
      const results: LanguageModelV4Prompt = [
        ...CALLED.slice(0, 2),
        {
          role: "tool",
          content: [{ type: "tool-result", ...CALL, output: { type: "content", value: [part] } }],
        },
      ];
      const isSent = async (prompt: LanguageModelV4Prompt) => {
        sent.length = 0;
        const options = { prompt: fittingPrompt(prompt, { kind }), tools: [TOOL] };
        try {
          await model.doGenerate(options);
        } catch (error) {
          if (!UnsupportedFunctionalityError.isInstance(error)) throw error;
        }
        return sent.some((body) => body.includes(DATA) || body.includes("ABCDEFG"));
      };
      const isUserSent = await isSent([{ role: "user", content: [part] }]);
      expect([mediaType, isUserSent]).toEqual([mediaType, !isRefusedType(kind, mediaType)]);
      // Some results take more types, none fewer.
      if (isUserSent) expect([mediaType, await isSent(results)]).toEqual([mediaType, true]);
    }
  },
);

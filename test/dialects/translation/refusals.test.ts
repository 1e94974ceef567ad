/** What providers of other kinds cannot be sent, and how a conversation fits their APIs. */
import { expect, test } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { Problem } from "../../../src/base/errors.ts";
import { fittingPrompt } from "../../../src/dialects/translation/fitting-prompt.ts";
import { limitedOptions } from "../../../src/dialects/translation/refusals.ts";

type Kind = Parameters<typeof limitedOptions>[1]["kind"];
type Options = Partial<LanguageModelV4CallOptions>;

const PATHS = { topK: "top_k", seed: "seed", stopSequences: "stop", responseFormat: "response_format" };
const USER: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "Hello" }] }];

function limited(kind: Kind, options: Options): LanguageModelV4CallOptions {
  return limitedOptions({ prompt: USER, ...options }, { kind }, PATHS);
}

/** The path of the field that is refused. */
function refused(kind: Kind, options: Options): string | undefined {
  try {
    limited(kind, options);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    expect(error.code).toBe("unsupported_parameter");
    return error.errors?.[0]?.path;
  }
  return undefined;
}

const SCHEMA = { type: "object" } as const;

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
    ["google", { topK: 5, seed: 1, stopSequences: ["END"], temperature: 1.5 }],
    ["builtin", { temperature: 0.5, seed: 1, responseFormat: { type: "text" } }],
  ];
  for (const [kind, options] of cases) expect(limited(kind, options)).toEqual({ prompt: USER, ...options });
});

test("values that clients send by default and that have no effect are left out", () => {
  const neutral = { temperature: 1, topP: 1, presencePenalty: 0, frequencyPenalty: 0, stopSequences: [] };
  expect(limited("openai", neutral)).toEqual({ prompt: USER });
  const { stopSequences, ...others } = neutral;
  expect(limited("anthropic", { ...others, reasoning: "high" })).toEqual({ prompt: USER, reasoning: "high" });
  expect(limited("anthropic", { stopSequences })).toEqual({ prompt: USER, stopSequences });
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
};

/** The real packages, with a model that has no limits of its own. */
function modelOf(kind: string): LanguageModelV4 {
  const answer: typeof fetch = Object.assign(async () => Response.json(ANSWERS[kind] ?? {}), {
    preconnect: () => {},
  });
  const settings = { apiKey: "k", fetch: answer };
  if (kind === "openai") return createOpenAI(settings)("gpt-4.1");
  if (kind === "anthropic") return createAnthropic(settings)("claude-sonnet-4-5");
  if (kind === "google") return createGoogleGenerativeAI(settings)("gemini-3-pro-preview");
  return createOpenAICompatible({ ...settings, name: "up", baseURL: "http://127.0.0.1:1" }).chatModel("m");
}

const SAMPLES: Options = {
  ...{ topK: 5, seed: 7, presencePenalty: 0.5, frequencyPenalty: 0.5, stopSequences: ["END"] },
  ...{ temperature: 0.5, topP: 0.5, responseFormat: { type: "json" } },
};

test("the table agrees with the installed packages' reports of omitted options", async () => {
  for (const kind of ["openai", "openai-compatible", "anthropic", "google"] as const) {
    const model = modelOf(kind);
    for (const [option, value] of Object.entries(SAMPLES)) {
      const options: Options = { maxOutputTokens: 100, [option]: value };
      const { warnings } = await model.doGenerate({ prompt: USER, ...options });
      const isDropped = warnings.some((each) => each.type === "unsupported" && each.feature === option);
      expect([kind, option, refused(kind, options) !== undefined]).toEqual([kind, option, isDropped]);
    }
  }
});

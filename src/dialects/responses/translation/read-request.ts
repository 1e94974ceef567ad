import type { JSONObject, LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import {
  listAt,
  numberAt,
  objectAt,
  oneOf,
  optional,
  type ReadonlyMembers,
  textAt,
} from "../../translation/fields.ts";
import { shortUserId } from "../../translation/short-user-id.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { readInput } from "./read-input.ts";
import { readFormat, readToolChoice, readTools } from "./read-tools.ts";

/** The names that a request for a response uses for the options of a call. */
export const RESPONSES_PATHS = {
  maxOutputTokens: "max_output_tokens",
  temperature: "temperature",
  topP: "top_p",
  responseFormat: "text.format",
  tools: "tools",
  toolChoice: "tool_choice",
  reasoning: "reasoning.effort",
  strict: "tools.strict",
} as const;

/** They change the cost or the speed of an answer, but not its content. */
const HINTS = [
  ...[
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "client_metadata",
  ],
  "stream_options",
];
/** Fields that cannot be translated, each with a test for values that have no effect. */
const NEUTRAL: Readonly<Record<string, (value: unknown) => boolean>> = {
  background: (value) => value === false,
  truncation: (value) => value === "disabled",
  top_logprobs: (value) => value === 0,
};
const KNOWN: ReadonlySet<string> = new Set([
  // The conversation that it names is already in `input`: see `wholeInput`.
  "previous_response_id",
  ...["model", "input", "instructions", "stream", "store", "metadata", "include", "max_output_tokens"],
  ...["temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text"],
  ...["user", "safety_identifier", ...HINTS, ...Object.keys(NEUTRAL)],
]);
const REASONING: ReadonlySet<string> = new Set(["effort", "summary", "generate_summary"]);
const TEXT: ReadonlySet<string> = new Set(["format", "verbosity"]);
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
const SUMMARIES = ["auto", "concise", "detailed"] as const;

type Options = Partial<LanguageModelV4CallOptions>;

/** Reads a request for a response as a call to another provider's model. */
export function readOptions(value: unknown, target: TranslationTarget): LanguageModelV4CallOptions {
  const request = objectAt(value, "");
  refuseUnknown(request, KNOWN);
  for (const [name, isNeutral] of Object.entries(NEUTRAL)) {
    const given = request[name] ?? undefined;
    if (given === undefined || isNeutral(given)) continue;
    throw unsupported(name, "cannot be translated for this model's provider.");
  }
  for (const [index, name] of (optional(request.include, "include", listAt) ?? []).entries()) {
    if (name === "reasoning.encrypted_content") continue;
    throw unsupported(`include[${index}]`, "cannot be included by this model's provider.");
  }
  return {
    prompt: readInput(request.instructions, request.input, target),
    ...readNumbers(request),
    ...readShape(request),
    ...readReasoning(request, target),
  };
}

function readNumbers(request: ReadonlyMembers): Options {
  const options: Options = {};
  const number = (name: string) => optional(request[name], name, numberAt);
  const maxOutputTokens = number("max_output_tokens");
  const [temperature, topP] = [number("temperature"), number("top_p")];
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens;
  if (temperature !== undefined) options.temperature = temperature;
  if (topP !== undefined) options.topP = topP;
  return options;
}

function readShape(request: ReadonlyMembers): Options {
  const options: Options = {};
  const tools = optional(request.tools, "tools", readTools);
  const toolChoice = optional(request.tool_choice, "tool_choice", readToolChoice);
  const text = optional(request.text, "text", objectAt) ?? {};
  refuseUnknown(text, TEXT, "text");
  if ((text.verbosity ?? "medium") !== "medium") {
    throw unsupported("text.verbosity", "cannot be translated for this model's provider.");
  }
  const format = optional(text.format, "text.format", readFormat);
  if (tools !== undefined && tools.length > 0) options.tools = tools;
  if (toolChoice !== undefined) options.toolChoice = toolChoice;
  if (format !== undefined) options.responseFormat = format;
  return options;
}

function readReasoning(request: ReadonlyMembers, target: TranslationTarget): Options {
  const reasoning = optional(request.reasoning, "reasoning", objectAt) ?? {};
  refuseUnknown(reasoning, REASONING, "reasoning");
  const effort = optional(reasoning.effort, "reasoning.effort", (given, path) => oneOf(given, path, EFFORTS));
  const summary = optional(
    reasoning.summary ?? reasoning.generate_summary,
    "reasoning.summary",
    (given, path) => oneOf(given, path, SUMMARIES),
  );
  const isSummarised = summary !== undefined && effort !== undefined && effort !== "none";
  const providerOptions = readProviderOptions(request, target, isSummarised);
  return {
    ...(effort === undefined ? {} : { reasoning: effort }),
    ...(providerOptions ? { providerOptions } : {}),
  };
}

/**
 * Options that only some kinds of providers support. The user is left out for kinds that have no field for it: it
 * does not affect answers.
 * @throws Problem 400 `unsupported_parameter`
 */
function readProviderOptions(
  request: ReadonlyMembers,
  { kind, provider }: TranslationTarget,
  isSummarised: boolean,
): SharedV4ProviderOptions | undefined {
  const isParallel = request.parallel_tool_calls !== false;
  const user = ["safety_identifier", "user"]
    .map((name) => optional(request[name], name, textAt))
    .find((name) => name !== undefined);
  const userId = user === undefined ? undefined : shortUserId(user);
  if (kind === "anthropic") {
    const anthropic: JSONObject = {
      ...(isParallel ? {} : { disableParallelToolUse: true }),
      ...(userId === undefined ? {} : { metadata: { userId } }),
    };
    return { anthropic };
  }
  if (kind === "openai-compatible") {
    return {
      openaiCompatible: userId === undefined ? {} : { user: userId },
      ...(isParallel ? {} : { [provider]: { parallel_tool_calls: false } }),
    };
  }
  if (!isParallel)
    throw unsupported("parallel_tool_calls", "cannot be turned off for this model's provider.");
  return (kind === "google" || kind === "vertex") && isSummarised
    ? { google: { thinkingConfig: { includeThoughts: true } } }
    : undefined;
}

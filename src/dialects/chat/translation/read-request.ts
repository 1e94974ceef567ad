import type { JSONObject, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import {
  booleanAt,
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
import { readMessages } from "./read-messages.ts";
import { readResponseFormat, readToolChoice, readTools } from "./read-tools.ts";

/** The names that a chat completion uses for the options of a call. */
export const CHAT_PATHS = {
  maxOutputTokens: "max_completion_tokens",
  temperature: "temperature",
  topP: "top_p",
  stopSequences: "stop",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  responseFormat: "response_format",
  tools: "tools",
  toolChoice: "tool_choice",
  reasoning: "reasoning_effort",
} as const;

/** They change the cost or the speed of an answer, but not its content. */
const HINTS = ["service_tier", "prompt_cache_key", "prompt_cache_retention"];
/** Fields that cannot be translated, each with a test for values that have no effect. */
const NEUTRAL: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value === 1,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  logit_bias: isEmptyObject,
  store: (value) => value === false,
  metadata: isEmptyObject,
  modalities: (value) => Array.isArray(value) && value.length === 1 && value[0] === "text",
  verbosity: (value) => value === "medium",
};
const KNOWN = new Set([
  ...["model", "messages", "stream", "stream_options", "max_tokens", "parallel_tool_calls"],
  ...["user", "safety_identifier", ...Object.values(CHAT_PATHS), ...HINTS, ...Object.keys(NEUTRAL)],
]);
const STREAM_OPTIONS = new Set(["include_usage", "include_obfuscation"]);
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** Reads a chat completion request as a call to another provider's model. */
export function readOptions(value: unknown, target: TranslationTarget): LanguageModelV4CallOptions {
  const request = objectAt(value, "");
  refuseUnknown(request, KNOWN);
  for (const [name, isNeutral] of Object.entries(NEUTRAL)) {
    const given = request[name] ?? undefined;
    if (given === undefined || isNeutral(given)) continue;
    throw unsupported(name, "cannot be translated for this model's provider.");
  }
  const streamOptions = optional(request.stream_options, "stream_options", objectAt);
  if (streamOptions) refuseUnknown(streamOptions, STREAM_OPTIONS, "stream_options");
  return {
    prompt: readMessages(request.messages, target),
    ...readSampling(request),
    ...readShape(request),
    ...readProviderOptions(request, target),
  };
}

type Options = Partial<LanguageModelV4CallOptions>;

function readSampling(request: ReadonlyMembers): Options {
  const options: Options = {};
  const number = (name: string) => optional(request[name], name, numberAt);
  const maxOutputTokens = number("max_completion_tokens") ?? number("max_tokens");
  const [temperature, topP, seed] = [number("temperature"), number("top_p"), number("seed")];
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens;
  if (temperature !== undefined) options.temperature = temperature;
  if (topP !== undefined) options.topP = topP;
  if (seed !== undefined) options.seed = seed;
  // Clients send 0, the default, even to providers that do not support penalties.
  const presence = number("presence_penalty") || undefined;
  const frequency = number("frequency_penalty") || undefined;
  if (presence !== undefined) options.presencePenalty = presence;
  if (frequency !== undefined) options.frequencyPenalty = frequency;
  const stop = optional(request.stop, "stop", readStop);
  if (stop !== undefined) options.stopSequences = stop;
  return options;
}

function readStop(value: unknown, path: string): string[] {
  if (typeof value === "string") return [value];
  return listAt(value, path).map((each, index) => textAt(each, `${path}[${index}]`));
}

function readShape(request: ReadonlyMembers): Options {
  const options: Options = {};
  const tools = optional(request.tools, "tools", readTools);
  const toolChoice = optional(request.tool_choice, "tool_choice", readToolChoice);
  const format = optional(request.response_format, "response_format", readResponseFormat);
  const effort = optional(request.reasoning_effort, "reasoning_effort", (given, path) =>
    oneOf(given, path, EFFORTS),
  );
  if (tools !== undefined && tools.length > 0) options.tools = tools;
  if (toolChoice !== undefined) options.toolChoice = toolChoice;
  if (format !== undefined) options.responseFormat = format;
  if (effort !== undefined) options.reasoning = effort;
  return options;
}

/** Options that only some kinds of providers support. */
function readProviderOptions(request: ReadonlyMembers, { kind }: TranslationTarget): Options {
  const anthropic: JSONObject = {};
  if (optional(request.parallel_tool_calls, "parallel_tool_calls", booleanAt) === false) {
    if (kind !== "anthropic") {
      throw unsupported("parallel_tool_calls", "cannot be turned off for this model's provider.");
    }
    anthropic.disableParallelToolUse = true;
  }
  for (const name of ["safety_identifier", "user"]) {
    const user = optional(request[name], name, textAt);
    if (user === undefined) continue;
    // Other providers are not told who is asking.
    if (kind === "anthropic") anthropic.metadata = { userId: shortUserId(user) };
  }
  return Object.keys(anthropic).length === 0 ? {} : { providerOptions: { anthropic } };
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

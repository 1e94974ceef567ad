import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { TranslationTarget } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

type Options = LanguageModelV4CallOptions;

/** An option that cannot be sent to a kind of provider. */
interface Limit {
  readonly option: keyof Options;
  /** Whether the request is refused if it lacks the option. Default: never. */
  isMissing?(options: Options): boolean;
  /** The value that means the same as no value, such as an empty list. It is left out. */
  readonly neutral?: number;
  /** Whether the AI SDK sends the option together with these others. Default: never. */
  isSent?(options: Options): boolean;
  readonly why: string;
}

const NOT_SENT = "cannot be sent to this model's provider.";

const TOP_K: Limit = { option: "topK", why: NOT_SENT };
const SEED: Limit = { option: "seed", why: NOT_SENT };
const STOP_SEQUENCES: Limit = { option: "stopSequences", why: NOT_SENT };
const PENALTIES: readonly Limit[] = [
  { option: "presencePenalty", neutral: 0, why: NOT_SENT },
  { option: "frequencyPenalty", neutral: 0, why: NOT_SENT },
];
const OPENAI: readonly Limit[] = [
  TOP_K,
  SEED,
  STOP_SEQUENCES,
  ...PENALTIES,
  // Clients send these defaults without being asked to, and the AI SDK does not pass them to reasoning models.
  { option: "temperature", neutral: 1, isSent: () => true, why: NOT_SENT },
  { option: "topP", neutral: 1, isSent: () => true, why: NOT_SENT },
];
const WITH_SCHEMA: Limit = {
  option: "responseFormat",
  isSent: ({ responseFormat }) => responseFormat?.type !== "json" || responseFormat.schema !== undefined,
  why: "needs a schema for this model's provider.",
};
const TEMPERATURE_TO_1: Limit = {
  option: "temperature",
  isSent: ({ temperature = 1 }) => temperature >= 0 && temperature <= 1,
  why: "must be from 0 to 1 for this model's provider.",
};
const NOT_WITH_REASONING = "cannot be sent to this model's provider together with reasoning.";
/** Limits of Anthropic's models. */
const WITHOUT_REASONING: readonly Limit[] = [
  { option: "temperature", neutral: 1, isSent: (options) => !reasons(options), why: NOT_WITH_REASONING },
  { option: "topP", neutral: 1, isSent: (options) => !reasons(options), why: NOT_WITH_REASONING },
  { option: "topK", isSent: (options) => !reasons(options), why: NOT_WITH_REASONING },
];
const ANTHROPIC: readonly Limit[] = [
  ...[SEED, ...PENALTIES, WITH_SCHEMA, TEMPERATURE_TO_1, ...WITHOUT_REASONING],
  {
    option: "topP",
    isSent: ({ temperature = 1 }) => temperature === 1,
    why: "cannot be sent to this model's provider together with a temperature.",
  },
];
const BEDROCK: readonly Limit[] = [
  ...[SEED, ...PENALTIES, WITH_SCHEMA, TEMPERATURE_TO_1],
  // If a request has no tools, the AI SDK also leaves out tool calls and results.
  {
    option: "tools",
    isMissing: ({ prompt, tools = [] }) => tools.length === 0 && hasCalls(prompt),
    why: "must define the tools that the conversation calls: this model's provider requires them.",
  },
  {
    option: "toolChoice",
    isSent: ({ prompt, toolChoice, responseFormat }) =>
      toolChoice?.type !== "none" || (!hasCalls(prompt) && responseFormat?.type !== "json"),
    why: "must not be none for this model's provider if there are tool calls or a format.",
  },
];
/** The names of Anthropic's models at Amazon contain this. */
const CLAUDE_AT_BEDROCK = "anthropic";

/**
 * The options that the AI SDK leaves out of a request to each kind of provider, which it reports only once the answer
 * has begun. Options that only some models of a kind lack are not listed: they are refused when the SDK reports them.
 */
const LIMITS: Readonly<Record<string, readonly Limit[]>> = {
  "openai-compatible": [TOP_K],
  openai: OPENAI,
  azure: OPENAI,
  anthropic: ANTHROPIC,
  bedrock: BEDROCK,
  builtin: [
    STOP_SEQUENCES,
    {
      option: "responseFormat",
      isSent: ({ responseFormat }) => responseFormat?.type !== "json",
      why: "cannot be followed by the embedded model, which quotes texts.",
    },
  ],
};

function limitsOf({ kind, model }: LimitedModel): readonly Limit[] {
  const limits = LIMITS[kind] ?? [];
  const isClaude = kind === "bedrock" && model.includes(CLAUDE_AT_BEDROCK);
  return isClaude ? [...limits, ...WITHOUT_REASONING] : limits;
}

/** The model whose options are limited, under its provider's name. */
type LimitedModel = Pick<TranslationTarget, "kind"> & { readonly model: string };

/** Kinds for which the AI SDK turns a format into a tool that the model may call in place of the client's tools. */
const FORMATS_AS_TOOLS: ReadonlySet<string> = new Set(["anthropic", "bedrock", "google", "vertex"]);

/**
 * Refuses options that cannot be sent to a kind of provider, before anything is sent.
 * @param paths the client's names of the options
 * @returns the options without those that have no effect
 * @throws Problem 400 `unsupported_parameter`
 */
export function limitedOptions(
  options: Options,
  model: LimitedModel,
  paths: Readonly<Record<string, string>>,
): Options {
  const limited = { ...options };
  // An answer that must be a tool call has no text to format.
  if (FORMATS_AS_TOOLS.has(model.kind) && isCallDemanded(options)) delete limited.responseFormat;
  for (const { option, isMissing, neutral, isSent, why } of limitsOf(model)) {
    const value = limited[option];
    if (isMissing) {
      if (isMissing(limited)) throw unsupported(paths[option] ?? option, why);
    } else if (value === undefined) continue;
    else if (value === neutral || (Array.isArray(value) && value.length === 0)) delete limited[option];
    else if (isSent?.(limited) !== true) throw unsupported(paths[option] ?? option, why);
  }
  return limited;
}

function isCallDemanded({ toolChoice }: Options): boolean {
  return toolChoice?.type === "required" || toolChoice?.type === "tool";
}

/** Whether a conversation has tool calls or their results. */
function hasCalls(prompt: Options["prompt"]): boolean {
  return prompt.some(
    ({ content }) =>
      typeof content !== "string" &&
      content.some(({ type }) => type === "tool-call" || type === "tool-result"),
  );
}

function reasons({ reasoning }: Options): boolean {
  return reasoning !== undefined && reasoning !== "none" && reasoning !== "provider-default";
}

import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { TranslationTarget } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

type Options = LanguageModelV4CallOptions;

/** An option that cannot be sent to a kind of provider. */
interface Limit {
  readonly option: keyof Options;
  /** The value that means the same as no value, like an empty list. It is left out. */
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
const ANTHROPIC: readonly Limit[] = [
  SEED,
  ...PENALTIES,
  WITH_SCHEMA,
  {
    option: "temperature",
    isSent: ({ temperature = 1 }) => temperature >= 0 && temperature <= 1,
    why: "must be from 0 to 1 for this model's provider.",
  },
  {
    option: "temperature",
    neutral: 1,
    isSent: (options) => !reasons(options),
    why: "cannot be sent to this model's provider together with reasoning.",
  },
  {
    option: "topP",
    neutral: 1,
    isSent: (options) => !reasons(options) && (options.temperature ?? 1) === 1,
    why: "cannot be sent to this model's provider together with a temperature or reasoning.",
  },
  {
    option: "topK",
    isSent: (options) => !reasons(options),
    why: "cannot be sent to this model's provider together with reasoning.",
  },
];

/**
 * The options that the AI SDK leaves out of a request to each kind of provider, which it reports only once the answer
 * has begun. Options that only some models of a kind do not support are not listed: they are refused by the report.
 */
const LIMITS: Readonly<Record<string, readonly Limit[]>> = {
  "openai-compatible": [TOP_K],
  openai: OPENAI,
  azure: OPENAI,
  anthropic: ANTHROPIC,
  bedrock: [SEED, ...PENALTIES, ...ANTHROPIC.slice(ANTHROPIC.indexOf(WITH_SCHEMA))],
  builtin: [
    STOP_SEQUENCES,
    {
      option: "responseFormat",
      isSent: ({ responseFormat }) => responseFormat?.type !== "json",
      why: "cannot be followed by the embedded model, which quotes texts.",
    },
  ],
};

/**
 * Refuses options that cannot be sent to a kind of provider, before anything is sent.
 * @param paths the client's names of the options
 * @returns the options without those that have no effect
 * @throws Problem 400 `unsupported_parameter`
 */
export function limitedOptions(
  options: Options,
  { kind }: Pick<TranslationTarget, "kind">,
  paths: Readonly<Record<string, string>>,
): Options {
  const limited = { ...options };
  for (const { option, neutral, isSent, why } of LIMITS[kind] ?? []) {
    const value = limited[option];
    if (value === undefined) continue;
    if (value === neutral || (Array.isArray(value) && value.length === 0)) delete limited[option];
    else if (isSent?.(limited) !== true) throw unsupported(paths[option] ?? option, why);
  }
  return limited;
}

function reasons({ reasoning }: Options): boolean {
  return reasoning !== undefined && reasoning !== "none" && reasoning !== "provider-default";
}

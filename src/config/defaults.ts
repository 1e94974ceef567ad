import type { LoadedConfig, ProviderConfig, ResolvedValue, Tier } from "./config.ts";
import { lookUp, type Variables } from "./environment.ts";
import { type ConfigProblem, configError } from "./problems.ts";
import { type ReadFile, readTextFile } from "./read-file.ts";
import { REDACTED } from "./redact.ts";
import { TABLE } from "./table.ts";

/** Ollama's default address. */
export const OLLAMA_URL = "http://127.0.0.1:11434";

/** The model that is always available. */
const BUILT_IN = "builtin/extractive";
const TIMEOUT_MS = 60_000;
/** How many of Ollama's models a default route uses. If eight fail, more are unlikely to help. */
const OLLAMA_MODELS = 8;

/** Each vendor's cheap and better models, for tiers 1 and 2, in the order in which the routes try them. */
const VENDORS = [
  { kind: "openai", variable: "OPENAI_API_KEY", models: ["gpt-5-nano", "gpt-5-mini"] },
  { kind: "anthropic", variable: "ANTHROPIC_API_KEY", models: ["claude-haiku-4-5", "claude-sonnet-4-5"] },
  { kind: "google", variable: "GEMINI_API_KEY", models: ["gemini-2.5-flash-lite", "gemini-2.5-flash"] },
] as const;
const TIER_NAMES = ["economy", "standard"] as const;

export interface DefaultsContext {
  readonly env: Variables;
  /** Names as listed by a local Ollama (`probeOllama`). */
  readonly ollamaModels: readonly string[];
  readonly readFile?: ReadFile;
}

export interface DefaultModels {
  /** Configured and detected providers. A configured provider replaces a detected one of the same name. */
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  readonly tiers: ReadonlyMap<number, Tier>;
}

interface VendorKey {
  readonly kind: (typeof VENDORS)[number]["kind"];
  readonly apiKey: string;
  /** The variable that contained it. */
  readonly from: string;
}

/** The vendor keys in the environment, either in `NAME` or in a file named by `NAME_FILE`. */
export function vendorKeys(
  env: Variables,
  readFile: ReadFile,
): { readonly keys: readonly VendorKey[]; readonly problems: readonly ConfigProblem[] } {
  const keys: VendorKey[] = [];
  const problems: ConfigProblem[] = [];
  for (const { kind, variable } of VENDORS) {
    const found = lookUp(env, readFile, variable);
    if (found === undefined) continue;
    const problem = (message: string) => problems.push({ key: variable, where: undefined, message });
    if ("failure" in found) {
      problem(found.failure);
      continue;
    }
    const apiKey = found.value.trim();
    if (!TABLE.providerApiKey.is(apiKey)) problem(`is ${REDACTED}; expected ${TABLE.providerApiKey.expects}`);
    else if (apiKey !== "") keys.push({ kind, apiKey, from: found.from });
  }
  return { keys, problems };
}

/**
 * The providers and tiers for a configuration without tiers: based on keys in the environment and a local Ollama,
 * with the built-in model last in each route. A configured vendor, under any name, is used as configured.
 * @throws OperatorError if a key's file cannot be read
 */
export function defaultModels(
  { env, ollamaModels, readFile = readTextFile }: DefaultsContext,
  configured: ReadonlyMap<string, ProviderConfig> = new Map(),
): DefaultModels {
  const { keys, problems } = vendorKeys(env, readFile);
  if (problems.length > 0) throw configError(problems);
  const providers = new Map(configured);
  for (const { kind, apiKey } of keys) {
    if (!providers.has(kind)) providers.set(kind, { kind, apiKey, timeoutMs: TIMEOUT_MS });
  }
  const meantOtherwise = (configured.get("ollama")?.kind ?? "openai-compatible") !== "openai-compatible";
  const local = meantOtherwise ? [] : ollamaModels.filter(isChatModel).slice(0, OLLAMA_MODELS);
  if (local.length > 0 && !providers.has("ollama")) {
    providers.set("ollama", {
      kind: "openai-compatible",
      baseUrl: `${OLLAMA_URL}/v1`,
      timeoutMs: TIMEOUT_MS,
    });
  }
  const tiers = TIER_NAMES.map((name, index): [number, Tier] => {
    const hosted = VENDORS.flatMap(({ kind, models }) => {
      const provider = [...providers].find(([, each]) => each.kind === kind)?.[0];
      return provider === undefined ? [] : [`${provider}/${models[index]}`];
    });
    const models = [...hosted, ...local.map((model) => `ollama/${model}`), BUILT_IN];
    return [index + 1, { tier: index + 1, name, models }];
  });
  return { providers, tiers: new Map(tiers) };
}

/**
 * The configuration with default models for its surroundings. Returned unchanged if the file names tiers, which are
 * then used exactly. May be called again after probing Ollama.
 */
export function withDefaultModels(loaded: LoadedConfig, around: DefaultsContext): LoadedConfig {
  if (!loaded.defaultTiers) return loaded;
  const { config } = loaded;
  const { providers, tiers } = defaultModels(around, config.providers);
  const added = [...providers].filter(([name]) => !config.providers.has(name));
  const rows = [
    ...added.flatMap(([name, provider]) => providerRows(name, provider, around)),
    ...[...tiers.values()].flatMap(tierRows),
  ];
  const kept = loaded.values.filter(({ path }) => path[0] !== "tiers");
  const at = kept.findIndex(({ key }) => key === TABLE.embeddingsModel.key);
  const values = [...kept.slice(0, at), ...rows, ...kept.slice(at)];
  return { ...loaded, config: { ...config, providers, tiers }, values };
}

/** Ollama lists its embedding models together with the others. */
function isChatModel(name: string): boolean {
  return TABLE.tierModels.is([`ollama/${name}`]) && !/embed|minilm|\bbge-/i.test(name);
}

function providerRows(name: string, provider: ProviderConfig, around: DefaultsContext): ResolvedValue[] {
  const key = vendorKeys(around.env, around.readFile ?? readTextFile).keys.find(({ kind }) => kind === name);
  const row = (field: string, value: string | number | undefined): ResolvedValue[] => {
    if (value === undefined) return [];
    const path = ["providers", name, field];
    const shared = { key: path.join("."), path, value, secret: field === "api_key" };
    return field === "api_key" && key
      ? [{ ...shared, origin: "environment", detail: key.from }]
      : [{ ...shared, origin: "default", detail: key ? `${key.from} is set` : "an Ollama answers" }];
  };
  return [
    ...row("kind", provider.kind),
    ...row("base_url", provider.baseUrl),
    ...row("api_key", provider.apiKey),
    ...row("timeout_ms", provider.timeoutMs),
  ];
}

function tierRows({ tier, name, models }: Tier): ResolvedValue[] {
  const shared = { secret: false, origin: "default", detail: "from the models found" } as const;
  return [
    { key: `tiers.${tier}.name`, path: ["tiers", `${tier}`, "name"], value: name, ...shared },
    { key: `tiers.${tier}.models`, path: ["tiers", `${tier}`, "models"], value: models, ...shared },
  ];
}

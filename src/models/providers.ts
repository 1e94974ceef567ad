import type { EmbeddingModelV4, LanguageModelV4 } from "@ai-sdk/provider";
import { extractiveModel } from "../agents/index.ts";
import type { Clock } from "../base/clock.ts";
import type { ProviderConfig, ProviderKind } from "../config/config.ts";
import { cappedFetch } from "./capped-fetch.ts";
import { boundedFetch } from "./embed/fetch.ts";
import { type Dialect, hideSecrets, type NativeEndpoint, nativeEndpoint } from "./native.ts";

/** A configured source of models. MUST be reached only through the model gateway. */
export interface Provider {
  readonly kind: ProviderKind | "builtin";
  readonly timeoutMs: number;
  model(name: string): LanguageModelV4;
  /** A model that makes vectors; undefined if its API has none. */
  embeddingModel(name: string): Promise<EmbeddingModelV4 | undefined>;
  /** Where it accepts requests in its own dialect; null if it does not speak this one. */
  native(dialect: Dialect): NativeEndpoint | null;
  /** Masks its address and credentials in its own texts. */
  hide(text: string): string;
}

/** The embedded model answers at once. The timeout only limits the tool results that it reads. */
const BUILTIN: Provider = {
  kind: "builtin",
  timeoutMs: 60_000,
  model: () => extractiveModel(),
  embeddingModel: async () => undefined,
  native: () => null,
  hide: (text) => text,
};
/** The most models of a provider that are kept. Clients may name models that are in no configuration. */
const MOST_REMEMBERED = 1_000;

/** Each kind's package is loaded only if configured: together they would add about 50 ms to every start. */
export async function createProviders(
  configured: ReadonlyMap<string, ProviderConfig>,
  clock: Clock,
): Promise<ReadonlyMap<string, Provider>> {
  const providers = new Map<string, Provider>([["builtin", BUILTIN]]);
  for (const [name, config] of configured) {
    providers.set(name, {
      kind: config.kind,
      timeoutMs: config.timeoutMs,
      model: remember(await modelFactory(name, config, clock)),
      embeddingModel: remember((model) => createEmbeddingModel(name, config, model, clock)),
      native: (dialect) => nativeEndpoint(config, dialect),
      hide: hideSecrets(config),
    });
  }
  return providers;
}

/**
 * Returns one object for each model, however many calls use it. The SDK builds a schema for each object: a new one
 * for every task took 10 to 25 % of a stream's time.
 */
function remember<Model>(make: (model: string) => Model): (model: string) => Model {
  const made = new Map<string, Model>();
  return (name) => {
    const known = made.get(name);
    if (known !== undefined) return known;
    const model = make(name);
    made.set(name, model);
    const [oldest] = made.keys();
    if (made.size > MOST_REMEMBERED && oldest !== undefined) made.delete(oldest);
    return model;
  };
}

async function modelFactory(
  name: string,
  config: ProviderConfig,
  clock: Clock,
): Promise<(model: string) => LanguageModelV4> {
  const { settings: given, endpoint } = settingsOf(config);
  const settings = { ...given, fetch: cappedFetch(config.kind, clock) };
  switch (config.kind) {
    case "openai-compatible": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const provider = createOpenAICompatible({
        name,
        baseURL: config.baseUrl ?? "",
        includeUsage: true,
        // Otherwise a schema for the answer would not be sent.
        supportsStructuredOutputs: true,
        ...settings,
      });
      return (model) => provider.chatModel(model);
    }
    case "openai": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      const provider = createOpenAI({ ...settings, ...endpoint });
      return (model) => provider(model);
    }
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      const provider = createAnthropic({ ...settings, ...endpoint });
      return (model) => provider(model);
    }
    case "google": {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      const provider = createGoogleGenerativeAI({ ...settings, ...endpoint });
      return (model) => provider(model);
    }
  }
}

/**
 * A provider's model that converts texts to vectors; undefined for a kind whose API has none. For the vault it bypasses the
 * model gateway, which controls the models that agents get answers from, so it MUST NOT be used to generate text.
 */
export async function createEmbeddingModel(
  name: string,
  config: ProviderConfig,
  model: string,
  clock: Clock,
): Promise<EmbeddingModelV4 | undefined> {
  const { settings, endpoint } = settingsOf(config);
  const bounded = { ...settings, fetch: boundedFetch(clock) };
  switch (config.kind) {
    case "openai-compatible": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ name, baseURL: config.baseUrl ?? "", ...bounded }).embeddingModel(
        model,
      );
    }
    case "openai": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      return createOpenAI({ ...bounded, ...endpoint }).embeddingModel(model);
    }
    case "google": {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      return createGoogleGenerativeAI({ ...bounded, ...endpoint }).embeddingModel(model);
    }
    case "anthropic":
      return undefined;
  }
}

function settingsOf(config: ProviderConfig) {
  return {
    settings: {
      ...(config.apiKey === undefined ? {} : { apiKey: config.apiKey }),
      ...(config.headers === undefined ? {} : { headers: config.headers }),
    },
    endpoint: config.baseUrl === undefined ? {} : { baseURL: config.baseUrl },
  };
}

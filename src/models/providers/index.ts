import type { EmbeddingModelV4, LanguageModelV4 } from "@ai-sdk/provider";
import { extractiveModel } from "../../agents/index.ts";
import type { Clock } from "../../base/clock.ts";
import type { ProviderConfig, ProviderKind } from "../../config/config.ts";
import { cappedFetch } from "../capped-fetch.ts";
import { boundedFetch } from "../embed/fetch.ts";
import { type Dialect, hideSecrets, type NativeEndpoint, nativeEndpoint } from "../native.ts";
import { anthropic } from "./anthropic.ts";
import { azure } from "./azure.ts";
import { baseUrlOf, queryOf } from "./base-url.ts";
import { bedrock } from "./bedrock.ts";
import { google } from "./google.ts";
import { IssuedSecrets } from "./issued-secrets.ts";
import { openAi } from "./openai.ts";
import { openAiCompatible } from "./openai-compatible.ts";
import type { ProviderModels, ProviderSetup } from "./provider-models.ts";
import { sendOnlyTo } from "./send-only-to.ts";
import { vertex } from "./vertex.ts";

/** A configured source of models. MUST be reached only through the model gateway. */
export interface Provider {
  readonly kind: ProviderKind | "builtin";
  readonly timeoutMs: number;
  model(name: string): LanguageModelV4;
  /** A model that makes vectors; undefined if its API has none. */
  embeddingModel(name: string): EmbeddingModelV4 | undefined;
  /** The provider's endpoint for a dialect; null if the provider does not support that dialect. */
  native(dialect: Dialect): NativeEndpoint | null;
  /** Masks the provider's address and credentials in text from the provider. */
  hide(text: string): string;
}

/** The embedded model answers at once. The timeout only limits the tool results that it reads. */
const BUILTIN: Provider = {
  kind: "builtin",
  timeoutMs: 60_000,
  model: () => extractiveModel(),
  embeddingModel: () => undefined,
  native: () => null,
  hide: (text) => text,
};

/** Each kind's package is loaded only if configured: together they would add about 50 ms to every start. */
const KINDS: Readonly<Record<ProviderKind, (setup: ProviderSetup) => Promise<ProviderModels>>> = {
  "openai-compatible": openAiCompatible,
  openai: openAi,
  azure,
  anthropic,
  google,
  bedrock,
  vertex,
};

/** The maximum number of models kept per provider. Clients may name models that are not configured. */
const MOST_REMEMBERED = 1_000;

export async function createProviders(
  configured: ReadonlyMap<string, ProviderConfig>,
  clock: Clock,
): Promise<ReadonlyMap<string, Provider>> {
  const providers = new Map<string, Provider>([["builtin", BUILTIN]]);
  for (const [name, config] of configured) {
    const issued = new IssuedSecrets(clock);
    const hide = hideSecrets(config, () => issued.texts);
    const models = await modelsOf(name, config, { clock, issued, fetch: cappedFetch(config.kind, clock) });
    const { embedding } = await modelsOf(name, config, { clock, issued, fetch: boundedFetch(clock) });
    providers.set(name, {
      kind: config.kind,
      timeoutMs: config.timeoutMs,
      model: remember((model) => makeOrFail(model, models.language)),
      embeddingModel: remember((model) => embedding?.(model)),
      native: (dialect) => nativeEndpoint(config, dialect, hide),
      hide,
    });
  }
  return providers;
}

/**
 * Returns the same object for all calls to a model. The SDK builds a schema for each object: a new one for every task
 * took 10 to 25% of a stream's time.
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

/** A name that the package refuses creates a model that always fails, so that the rest of its route can be used. */
function makeOrFail(name: string, make: (model: string) => LanguageModelV4): LanguageModelV4 {
  try {
    return make(name);
  } catch (error) {
    const fail = () => Promise.reject(error);
    return {
      ...{ specificationVersion: "v4", provider: "refused", modelId: name, supportedUrls: {} },
      ...{ doGenerate: fail, doStream: fail },
    };
  }
}

/**
 * A provider's model that converts texts to vectors; undefined for a kind whose API has none. The vault uses it
 * without the model gateway, which controls the models that answer agents, so it MUST NOT be used to generate text.
 */
export async function createEmbeddingModel(
  name: string,
  config: ProviderConfig,
  model: string,
  clock: Clock,
): Promise<EmbeddingModelV4 | undefined> {
  // Callers of the vault get errors without any text from the provider, so nothing needs to be masked.
  const issued = new IssuedSecrets(clock);
  const { embedding } = await modelsOf(name, config, { clock, issued, fetch: boundedFetch(clock) });
  return embedding?.(model);
}

function modelsOf(
  name: string,
  config: ProviderConfig,
  { fetch, ...parts }: Pick<ProviderSetup, "clock" | "issued" | "fetch">,
): Promise<ProviderModels> {
  const { kind, headers = {} } = config;
  const baseUrl = baseUrlOf(config);
  const sending = sendOnlyTo(baseUrl, queryOf(config), fetch);
  return KINDS[kind]({ name, config, baseUrl, headers, ...parts, fetch: sending });
}

import type { LanguageModelV4 } from "@ai-sdk/provider";
import { extractiveModel } from "../agents/index.ts";
import type { ProviderConfig } from "../config/config.ts";

/** A configured source of models, not to be reached but through the door. */
export interface Provider {
  readonly timeoutMs: number;
  model(name: string): LanguageModelV4;
}

/** The embedded model answers at once; the timeout only bounds the tools' results that it reads. */
const BUILTIN: Provider = { timeoutMs: 60_000, model: () => extractiveModel() };

/** Each kind's package is loaded only where it is configured: together they would add some 50 ms to every start. */
export async function createProviders(
  configured: ReadonlyMap<string, ProviderConfig>,
): Promise<ReadonlyMap<string, Provider>> {
  const providers = new Map<string, Provider>([["builtin", BUILTIN]]);
  for (const [name, config] of configured) {
    providers.set(name, { timeoutMs: config.timeoutMs, model: remember(await modelFactory(name, config)) });
  }
  return providers;
}

/**
 * One object a model, however many tasks use it: the SDK builds a schema for each, and a fresh one a task cost 10 to 25 %
 * of a stream's time. There are as many as the configuration names.
 */
function remember(make: (model: string) => LanguageModelV4): (model: string) => LanguageModelV4 {
  const made = new Map<string, LanguageModelV4>();
  return (name) => {
    const model = made.get(name) ?? make(name);
    made.set(name, model);
    return model;
  };
}

async function modelFactory(
  name: string,
  config: ProviderConfig,
): Promise<(model: string) => LanguageModelV4> {
  const settings = {
    ...(config.apiKey === undefined ? {} : { apiKey: config.apiKey }),
    ...(config.headers === undefined ? {} : { headers: config.headers }),
  };
  const endpoint = config.baseUrl === undefined ? {} : { baseURL: config.baseUrl };
  switch (config.kind) {
    case "openai-compatible": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const provider = createOpenAICompatible({
        name,
        baseURL: config.baseUrl ?? "",
        includeUsage: true,
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

import { withoutContinuation } from "./no-continuation.ts";
import type { ProviderModels, ProviderSetup } from "./provider-models.ts";

export async function google({
  config: { apiKey = "" },
  baseUrl: baseURL,
  headers,
  fetch,
}: ProviderSetup): Promise<ProviderModels> {
  const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
  const provider = createGoogleGenerativeAI({
    ...{ baseURL, apiKey, headers },
    fetch: withoutContinuation(fetch),
  });
  return { language: (model) => provider(model), embedding: (model) => provider.embeddingModel(model) };
}

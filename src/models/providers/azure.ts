import type { ProviderModels, ProviderSetup } from "./provider-models.ts";
import { requireEnd } from "./require-end.ts";

/**
 * Azure OpenAI, through its v1 API. Models are named after their deployments. `fetch` adds the version to each
 * request.
 */
export async function azure({
  config: { apiKey = "" },
  baseUrl: baseURL,
  headers,
  fetch,
}: ProviderSetup): Promise<ProviderModels> {
  const { createAzure } = await import("@ai-sdk/azure");
  const provider = createAzure({ baseURL, apiKey, headers: { ...headers }, fetch });
  return {
    language: (model) => requireEnd(provider(model)),
    embedding: (model) => provider.embeddingModel(model),
  };
}

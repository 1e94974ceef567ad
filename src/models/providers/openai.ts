import type { ProviderModels, ProviderSetup } from "./provider-models.ts";

export async function openAi({
  config: { apiKey = "" },
  baseUrl: baseURL,
  headers,
  fetch,
}: ProviderSetup): Promise<ProviderModels> {
  const { createOpenAI } = await import("@ai-sdk/openai");
  const provider = createOpenAI({ baseURL, apiKey, headers, fetch });
  return { language: (model) => provider(model), embedding: (model) => provider.embeddingModel(model) };
}

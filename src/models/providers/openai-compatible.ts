import type { ProviderModels, ProviderSetup } from "./provider-models.ts";
import { quickChunks } from "./quick-chunks.ts";

export async function openAiCompatible({
  name,
  config: { apiKey },
  baseUrl: baseURL,
  headers,
  fetch,
}: ProviderSetup): Promise<ProviderModels> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const key = apiKey === undefined ? {} : { apiKey };
  const provider = createOpenAICompatible({
    name,
    baseURL,
    headers,
    fetch,
    includeUsage: true,
    // Without this, a schema for the answer would not be sent.
    supportsStructuredOutputs: true,
    ...key,
  });
  return {
    language: (model) => quickChunks(provider.chatModel(model)),
    embedding: (model) => provider.embeddingModel(model),
  };
}

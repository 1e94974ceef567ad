import type { ProviderModels, ProviderSetup } from "./provider-models.ts";

export async function openAiCompatible({
  name,
  config: { apiKey },
  baseUrl: baseURL,
  headers,
  fetch,
}: ProviderSetup): Promise<ProviderModels> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { chatCompletions } = await import("./chat-completions/model.ts");
  const key = apiKey === undefined ? {} : { apiKey };
  const provider = createOpenAICompatible({ name, baseURL, headers, fetch, ...key });
  return {
    language: chatCompletions({ name, baseURL, headers, fetch, ...key }),
    embedding: (model) => provider.embeddingModel(model),
  };
}

import type { ProviderModels, ProviderSetup } from "./provider-models.ts";

export async function anthropic({
  config: { apiKey = "" },
  baseUrl: baseURL,
  headers,
  fetch,
}: ProviderSetup): Promise<ProviderModels> {
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  const provider = createAnthropic({ baseURL, apiKey, headers, fetch });
  return { language: (model) => provider(model) };
}

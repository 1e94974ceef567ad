import type { ProviderModels, ProviderSetup } from "./provider-models.ts";
import { requireEnd } from "./require-end.ts";

/**
 * Amazon Bedrock, through its Converse API. Without an API key, requests are signed with the access key. Every value
 * is passed explicitly, even if empty: the package would otherwise use the machine's `AWS_…` variables.
 */
export async function bedrock({
  config,
  baseUrl: baseURL,
  headers,
  fetch,
}: ProviderSetup): Promise<ProviderModels> {
  const { createAmazonBedrock } = await import("@ai-sdk/amazon-bedrock");
  const { apiKey = "", region = "", accessKeyId = "", secretAccessKey = "", sessionToken } = config;
  const provider = createAmazonBedrock({
    ...{ baseURL, region, apiKey, accessKeyId, secretAccessKey, headers: { ...headers }, fetch },
    ...(sessionToken === undefined ? {} : { sessionToken }),
  });
  return {
    language: (model) => requireEnd(provider(model)),
    embedding: (model) => provider.embeddingModel(model),
  };
}

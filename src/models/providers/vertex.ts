import { parseServiceAccountKey } from "../../config/service-account-key.ts";
import { withoutContinuation } from "./no-continuation.ts";
import type { ProviderModels, ProviderSetup } from "./provider-models.ts";
import { ServiceAccountTokens } from "./service-account-tokens.ts";

/**
 * Gemini on Vertex AI, with an API key or as a service account. The package would request a token for each call,
 * without time or size limits. It is therefore given the token as if it were an API key, and `fetch` sends it as a
 * bearer token. Tuned models (`endpoints/…`) are not offered: the package refuses them with an API key.
 */
export async function vertex({
  config: { apiKey, credentials },
  baseUrl: baseURL,
  headers,
  fetch,
  clock,
  issued,
}: ProviderSetup): Promise<ProviderModels> {
  const { createGoogleVertex } = await import("@ai-sdk/google-vertex/edge");
  const account = credentials === undefined ? undefined : parseServiceAccountKey(credentials);
  const tokens = account && new ServiceAccountTokens(account, clock, issued);
  const provider = createGoogleVertex({
    ...{ baseURL, headers },
    // A function, because an empty string would be replaced by an environment variable's key.
    apiKey: async () => tokens?.current() ?? apiKey ?? "",
    fetch: withoutContinuation(tokens ? withBearer(fetch) : fetch),
  });
  return { language: (model) => provider(model), embedding: (model) => provider.embeddingModel(model) };
}

const API_KEY = "x-goog-api-key";

function withBearer(inner: typeof fetch): typeof fetch {
  const sending = (input: string | URL | Request, init?: RequestInit | BunFetchRequestInit) => {
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${headers.get(API_KEY) ?? ""}`);
    headers.delete(API_KEY);
    return inner(input, { ...init, headers });
  };
  return Object.assign(sending, { preconnect: inner.preconnect });
}

import { describe, expect, test } from "bun:test";
import type { ProviderConfig } from "../../../src/config/config.ts";
import { nativeEndpoint } from "../../../src/models/native.ts";
import { baseUrlOf, queryOf } from "../../../src/models/providers/base-url.ts";
import { sendOnlyTo } from "../../../src/models/providers/send-only-to.ts";

type Fields = Omit<ProviderConfig, "timeoutMs">;
const urlOf = (fields: Fields) => {
  const config = { timeoutMs: 1, ...fields };
  return baseUrlOf(config) + queryOf(config);
};
const vertex = (location: string): Fields => ({ kind: "vertex", project: "p", location, credentials: "{}" });
const within = (host: string, location: string) =>
  `https://${host}/v1beta1/projects/p/locations/${location}/publishers/google`;

test.each<[Fields, string]>([
  [{ kind: "openai" }, "https://api.openai.com/v1"],
  [{ kind: "anthropic" }, "https://api.anthropic.com/v1"],
  [{ kind: "google" }, "https://generativelanguage.googleapis.com/v1beta"],
  [{ kind: "openai-compatible", baseUrl: "http://x/v1" }, "http://x/v1"],
  [{ kind: "azure", resource: "mine" }, "https://mine.openai.azure.com/openai/v1?api-version=v1"],
  [
    { kind: "azure", resource: "mine", apiVersion: "preview" },
    "https://mine.openai.azure.com/openai/v1?api-version=preview",
  ],
  [{ kind: "azure", baseUrl: "https://proxy.example/az" }, "https://proxy.example/az"],
  [
    { kind: "azure", baseUrl: "https://proxy.example/az", apiVersion: "v1" },
    "https://proxy.example/az?api-version=v1",
  ],
  [{ kind: "bedrock", region: "eu-central-1" }, "https://bedrock-runtime.eu-central-1.amazonaws.com"],
  [{ kind: "bedrock", region: "cn-north-1" }, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"],
  [{ kind: "bedrock", region: "us-isob-east-1" }, "https://bedrock-runtime.us-isob-east-1.sc2s.sgov.gov"],
  [{ kind: "vertex", apiKey: "k" }, "https://aiplatform.googleapis.com/v1/publishers/google"],
  [vertex("global"), within("aiplatform.googleapis.com", "global")],
  [vertex("eu"), within("aiplatform.eu.rep.googleapis.com", "eu")],
  [vertex("europe-west4"), within("europe-west4-aiplatform.googleapis.com", "europe-west4")],
])("%j is %s", (fields, url) => {
  expect(urlOf(fields)).toBe(url);
});

test("azure's own address is the same for passed and for translated requests", async () => {
  const config: ProviderConfig = { kind: "azure", resource: "mine", apiKey: "key", timeoutMs: 1 };
  const sent: string[] = [];
  const recording = async (input: string | URL | Request) => {
    sent.push(String(input));
    return Response.json({}, { status: 500 });
  };
  const { createAzure } = await import("@ai-sdk/azure");
  const fetch = sendOnlyTo(
    baseUrlOf(config),
    queryOf(config),
    Object.assign(recording, { preconnect: globalThis.fetch.preconnect }),
  );
  const provider = createAzure({ baseURL: baseUrlOf(config), apiKey: "key", fetch });
  const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "x" }] }];
  await Promise.resolve(provider.chat("m").doGenerate({ prompt })).catch(() => {});
  const { url, query, headers } = nativeEndpoint(config, "chat_completions", String) ?? {};
  expect(sent).toEqual([`${url}${query}`]);
  expect(headers).toEqual({ "api-key": "key" });
});

describe("a provider's package reaches only addresses below its URL:", () => {
  test.each([
    ["http://other.example/v1/x", "another host"],
    ["http://up.example:81/v1/x", "another port"],
    ["https://up.example/v1/x", "another scheme"],
    ["http://up.example/v10/x", "a path that only begins alike"],
    ["http://up.example/v1/../admin", "a path above it"],
    ["http://up.example/v1/%2e%2e/admin", "an encoded path above it"],
  ])("%s is %s", async (url) => {
    let wasSent = false;
    const inner = async () => {
      wasSent = true;
      return new Response();
    };
    const limited = sendOnlyTo(
      "http://up.example/v1",
      "",
      Object.assign(inner, { preconnect: globalThis.fetch.preconnect }),
    );
    expect(limited(url)).rejects.toThrow("goes to an address outside the configured provider");
    expect(wasSent).toBe(false);
  });
});

/** Vectors from the providers azure, bedrock and vertex. */
import { afterAll, expect, test } from "bun:test";
import type { ProviderConfig } from "../../../src/config/config.ts";
import { createEmbedder } from "../../../src/models/embed/embedder.ts";
import { FakeClock } from "../../support/clock.ts";
import { startRecordingUpstream } from "../../support/recording-upstream.ts";

const upstream = startRecordingUpstream();
afterAll(() => upstream.close());

const openAi = { data: [{ embedding: [3, 4], index: 0 }], usage: { prompt_tokens: 1 } };
const titan = { embedding: [3, 4], inputTextTokenCount: 1 };
const gecko = { predictions: [{ embeddings: { values: [3, 4], statistics: { token_count: 1 } } }] };

test.each<[Omit<ProviderConfig, "timeoutMs">, model: string, answer: object, path: string]>([
  [{ kind: "azure", apiKey: "k", apiVersion: "v1" }, "mine", openAi, "/embeddings?api-version=v1"],
  [
    { kind: "bedrock", apiKey: "k", region: "us-east-1" },
    "amazon.titan-embed-text-v2:0",
    titan,
    "/model/amazon.titan-embed-text-v2%3A0/invoke",
  ],
  [{ kind: "vertex", apiKey: "k" }, "text-embedding-005", gecko, "/models/text-embedding-005:predict"],
])("%j", async (fields, model, answer, path) => {
  upstream.requests.length = 0;
  upstream.answer(() => Response.json(answer));
  const providers = new Map([["up", { ...fields, baseUrl: upstream.url, timeoutMs: 60_000 }]]);
  const embedder = await createEmbedder({ embeddings: { model: `up/${model}` }, providers }, new FakeClock());
  const vectors = await embedder?.embed(["hello"], "document", { workspaceId: 1 });
  expect(vectors?.map((vector) => [...vector])).toEqual([[0.6, 0.8].map(Math.fround)]);
  expect(upstream.requests.map((request) => request.path)).toEqual([path]);
});

/** Embeddings of a provider that does not speak OpenAI's dialect, with OpenAI's own client. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { AnswerTooLarge } from "../../src/agents/index.ts";
import { embedAll, VectorAnswer } from "../../src/dialects/translation/vectors.ts";
import { AnswerMemory, AnswerShare, SHARED_ANSWER_MEMORY } from "../../src/models/answer-memory.ts";
import { until } from "../support/until.ts";
import { openTranslationStage, type TranslationStage } from "./chat/translation-support.ts";

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
  stage.google.script("vectors", {});
});
afterAll(() => stage.stop());

const MODEL = "gemini/vectors";
const MIB = 1024 * 1024;
/** Bytes of each answer that do not count, and how many more all answers may have together. */
const ORDINARY = 8 * MIB;
const MOST = 512 * MIB;

test.each(["float", "base64", undefined] as const)("come in the format %p, exactly", async (format) => {
  const { data, model, object } = await stage.client.embeddings.create({
    ...{ model: MODEL, input: ["a", "four"] },
    ...(format === undefined ? {} : { encoding_format: format }),
  });
  expect([model, object]).toEqual([MODEL, "list"]);
  const vectors = data.map(({ embedding }) =>
    typeof embedding === "string"
      ? [...new Float32Array(new Uint8Array(Buffer.from(embedding, "base64")).buffer)]
      : [...embedding],
  );
  expect(vectors).toEqual([
    [1, 0.5, -0.25],
    [4, 0.5, -0.25],
  ]);
  expect(data.map(({ index }) => index)).toEqual([0, 1]);
});

test("are requested in batches, with the dimensions, and recorded as one call", async () => {
  const before = stage.google.requests.length;
  const input = Array.from({ length: 250 }, (_, index) => "x".repeat(index + 1));
  const { data } = await stage.client.embeddings.create({
    ...{ model: MODEL, input, dimensions: 3, encoding_format: "float" },
  });
  expect(data.map(({ embedding }) => embedding[0])).toEqual(input.map(({ length }) => length));
  const asked = stage.google.requests.slice(before).map(({ body }) => body.requests);
  expect(asked.map(({ length }) => length)).toEqual([100, 100, 50]);
  expect(asked[0][0].outputDimensionality).toBe(3);
  const [intent, outcome, ...more] = await stage.lastEntries();
  expect(more).toEqual([]);
  expect(outcome).toMatchObject({
    ...{ ref: intent?.seq ?? null, outcome: "succeeded", model: MODEL },
    detail: { dialect: "embeddings", usage: "estimated", output_tokens: 0 },
  });
  expect(Number(outcome?.detail?.input_tokens)).toBeGreaterThan(1_000);
});

test.each<[string, number, string, object]>([
  ["token ids instead of texts", 400, "unsupported_parameter", { input: [[1, 2, 3]] }],
  ["a list of token ids", 400, "unsupported_parameter", { input: [1, 2, 3] }],
  ["a field that cannot be translated", 400, "unsupported_parameter", { input: "a", user: "ann" }],
  ["no texts", 422, "validation_failed", { input: [] }],
  ["dimensions that are not a number", 422, "validation_failed", { input: "a", dimensions: 0.5 }],
  ["a forbidden model", 403, "model_forbidden", { model: "gemini/never", input: "a" }],
  ["a provider without vectors", 400, "unsupported_parameter", { model: "claude/second", input: "a" }],
  ["the embedded model", 400, "unsupported_parameter", { model: "builtin/extractive", input: "a" }],
])("%s is refused before anything is sent", async (_, status, code, body) => {
  const before = stage.google.requests.length;
  const answer = await stage.post("/v1/embeddings", { model: MODEL, ...body });
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code]);
  expect(stage.google.requests.length).toBe(before);
});

test("a provider that fails is reported in OpenAI's format", async () => {
  stage.google.script("vectors", { status: 429, headers: { "retry-after": "3" } });
  const answer = await stage.post("/v1/embeddings", { model: MODEL, input: "a" });
  stage.google.script("vectors", {});
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([429, "provider_busy"]);
  expect(answer.headers.get("retry-after")).toBe("3");
});

test("a policy that changes between two batches prevents the later ones", async () => {
  const gate = Promise.withResolvers<void>();
  stage.google.script("vectors", { gate: gate.promise });
  const before = stage.google.requests.length;
  const input = Array.from({ length: 150 }, () => "text");
  const answer = stage.post("/v1/embeddings", { model: MODEL, input });
  await until(() => stage.google.requests.length > before);
  const read = (await stage.gateway.call("GET", "/v1/agents/clerk")).body.tier_policy;
  const forbidden = { ...read, models: { allow: ["*"], deny: ["gemini/*"] } };
  await stage.gateway.call("PATCH", "/v1/agents/clerk", { body: { tier_policy: forbidden } });
  gate.resolve();
  const { status, text } = await answer;
  await stage.gateway.call("PATCH", "/v1/agents/clerk", { body: { tier_policy: read } });
  expect([status, JSON.parse(text).error.code]).toEqual([403, "model_forbidden"]);
  expect(stage.google.requests.length).toBe(before + 1);
  expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "failed", code: "model_forbidden" });
});

test("requests that were answered before one failed are charged", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  stage.google.script("vectors", { gate: promise });
  const before = stage.google.requests.length;
  // Text counts as text, however much it looks like data.
  const input = Array.from({ length: 250 }, () => "data:word ".repeat(100));
  const answer = stage.post("/v1/embeddings", { model: MODEL, input });
  await until(() => stage.google.requests.length > before);
  stage.google.script("vectors", { status: 500 });
  resolve();
  expect((await answer).status).toBe(502);
  stage.google.script("vectors", {});
  const last = (await stage.lastEntries()).at(-1);
  expect(last).toMatchObject({ outcome: "failed" });
  expect(last?.detail?.input_tokens).toBe(25_000);
});

test("count in the memory that all answers in progress share, until they are handed over", async () => {
  stage.google.script("vectors", { numbers: 8_192 });
  let failures = 0;
  const other = SHARED_ANSWER_MEMORY.enter(() => failures++);
  try {
    // The other answer takes all memory, less than a vector in the request below.
    other.add(ORDINARY + MOST - 8_192 * 8);
    const request = { model: MODEL, input: Array.from({ length: 150 }, () => "text") };
    // Vectors of 10 MB, and as much text, need more than an ordinary answer has.
    expect((await stage.post("/v1/embeddings", request)).status).toBe(200);
    expect(failures).toBe(1);
  } finally {
    other.leave();
    stage.google.script("vectors", {});
  }
  // Nothing is left behind.
  const next = SHARED_ANSWER_MEMORY.enter(() => failures++);
  next.add(ORDINARY + MOST);
  next.leave();
  expect(failures).toBe(1);
});

test("an answer that is the longest when memory runs out fails, and its provider's request ends", async () => {
  const memory = new AnswerMemory(0, 1_000);
  const share = new AnswerShare(memory);
  const requested = Promise.withResolvers<AbortSignal>();
  const model = {
    maxEmbeddingsPerCall: 1,
    async doEmbed({ values, abortSignal }: { values: string[]; abortSignal?: AbortSignal }) {
      if (values[0] === "first") return { embeddings: [Array(100).fill(0.5)] };
      if (abortSignal) requested.resolve(abortSignal);
      return new Promise((_, reject) =>
        abortSignal?.addEventListener("abort", () => reject(abortSignal.reason)),
      );
    },
  };
  const embedding = embedAll(model as unknown as Parameters<typeof embedAll>[0], {
    ...{ values: ["first", "second"], dimensions: undefined, headers: {}, share },
    ...{ signal: new AbortController().signal, renew: async () => {}, used: () => {} },
  });
  const ended = embedding.catch((error: unknown) => error);
  await requested.promise;
  const other = memory.enter(() => {});
  other.add(300);
  expect(await ended).toBeInstanceOf(AnswerTooLarge);
  expect(share.failure).toBeInstanceOf(AnswerTooLarge);
});

test("what is written of vectors counts until the answer ends", async () => {
  const memory = new AnswerMemory(0, 1_000);
  const share = new AnswerShare(memory);
  const parts = { tokens: null, hide: (text: string) => text, workspaceId: 1, share };
  const answer = new VectorAnswer(["x".repeat(600)], parts);
  await answer.read();
  const other = new AnswerShare(memory);
  other.add(500);
  expect(answer.failure).toBeInstanceOf(AnswerTooLarge);
  await expect(answer.read()).resolves.toBeUndefined();
  const another = new VectorAnswer(["x".repeat(400)], { ...parts, share: new AnswerShare(memory) });
  await another.read();
  another.end();
  other.add(500);
  expect(other.failure).toBeNull();
});

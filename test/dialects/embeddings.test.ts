/** OpenAI's Embeddings, passed through, with OpenAI's own client. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { describeVectors, inFormat } from "../../src/dialects/embeddings/vectors.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

const VECTORS = [
  [0.25, -1.5, 3.0625],
  [1e-8, 2, 0.1],
].map((vector) => Array.from(new Float32Array(vector)));

let stage: DialectStage;
let answers: "asked" | "float" | "base64" = "asked";
let status = 200;
const seen: { readonly body: string; readonly authorization: string | null }[] = [];
const upstream = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const body = await request.text();
    seen.push({ body, authorization: request.headers.get("authorization") });
    if (status !== 200) return Response.json({ error: { message: "no" } }, { status });
    const { encoding_format: asked = "float" } = JSON.parse(body) as { encoding_format?: string };
    const format = answers === "asked" ? asked : answers;
    const data = VECTORS.map((vector, index) => ({
      object: "embedding",
      index,
      embedding:
        format === "base64" ? Buffer.from(new Float32Array(vector).buffer).toString("base64") : vector,
    }));
    return Response.json({ object: "list", data, model: "m", usage: { prompt_tokens: 9, total_tokens: 9 } });
  },
});
beforeAll(async () => {
  stage = await openDialectStage({
    providers: `  vec: { kind: openai-compatible, base_url: "http://127.0.0.1:${upstream.port}/v1", api_key: sk-vec }`,
  });
});
afterAll(async () => {
  await stage.stop();
  await upstream.stop(true);
});

function client(): OpenAI {
  return new OpenAI({ apiKey: stage.gateway.admin, baseURL: `${stage.gateway.url}/v1`, maxRetries: 0 });
}

describe.each(["asked", "float", "base64"] as const)("a server that answers in the format %s", (format) => {
  test("gives a client the exact vectors by default", async () => {
    answers = format;
    const { data } = await client().embeddings.create({ model: "vec/m", input: ["a", "b"] });
    expect(data.map(({ embedding }) => Array.from(embedding))).toEqual(VECTORS);
  });

  test.each(["float", "base64"] as const)("gives a client that requests %s that format", async (asked) => {
    answers = format;
    const { body } = await stage.gateway.call("POST", "/v1/embeddings", {
      body: { model: "vec/m", input: ["a", "b"], encoding_format: asked },
    });
    const [first] = body.data;
    expect(typeof first.embedding).toBe(asked === "float" ? "object" : "string");
    const vector =
      asked === "float"
        ? first.embedding
        : Array.from(new Float32Array(new Uint8Array(Buffer.from(first.embedding, "base64")).buffer));
    expect(vector).toEqual(VECTORS[0]);
  });
});

test("the request is passed on except for the model's name; tokens are evidence and vectors are not", async () => {
  answers = "asked";
  const body = '{ "input":["a"], "dimensions" : 3, "x": {"y":1}, "model":"vec/m" }';
  const answer = await stage.gateway.call("POST", "/v1/embeddings", { raw: body });
  expect(answer.status).toBe(200);
  expect(seen.at(-1)).toEqual({ body: body.replace("vec/m", "m"), authorization: "Bearer sk-vec" });
  const outcome = (await stage.entries()).at(-1);
  expect(outcome).toMatchObject({
    outcome: "succeeded",
    detail: { dialect: "embeddings", input_tokens: 9, output_tokens: 0, usage: "reported" },
  });
});

test.each([
  ["no model", 422, "validation_failed", { input: "a" }],
  ["an unknown format", 422, "validation_failed", { model: "vec/m", input: "a", encoding_format: "int8" }],
  ["an unknown model", 404, "model_not_found", { model: "nothing", input: "a" }],
  ["a provider without embeddings", 400, "unsupported_parameter", { model: "other/claude", input: "a" }],
])("%s is refused", async (_, expected, code, body) => {
  const before = seen.length;
  const answer = await stage.gateway.call("POST", "/v1/embeddings", { body });
  expect([answer.status, answer.body.error.code, seen.length]).toEqual([expected, code, before]);
});

test("a provider that fails is reported in OpenAI's format", async () => {
  status = 500;
  const answer = await stage.gateway.call("POST", "/v1/embeddings", { body: { model: "vec/m", input: "a" } });
  status = 200;
  expect([answer.status, answer.body.error.code]).toEqual([502, "provider_failed"]);
});

describe("an answer of 16 MB in a format that was not requested", () => {
  const parts = (first: string, unit: string) =>
    `{"data":[{"embedding":${first}},${unit.repeat(Math.floor(16_000_000 / unit.length))}${unit.slice(0, -1)}]}`;
  const WIDE: [name: string, asked: "float" | "base64", answer: () => string][] = [
    ["numbers", "base64", () => parts("[0]", "0,")],
    ["empty lists", "base64", () => parts("[0]", "[],")],
    ["empty objects", "base64", () => parts("[0]", "{},")],
    ["empty texts", "base64", () => parts("[0]", '"",')],
    ["empty objects, with vectors as texts", "float", () => parts('"AAAA"', "{},")],
    ["vectors as one text", "float", () => `{"data":[{"embedding":"${"A".repeat(16_000_000)}"}]}`],
    ["a number for each vector", "base64", () => parts("[0]", "0.12345678901234567890,")],
  ];
  test.each(WIDE)("is refused if it is full of %s", (_, asked, answer) => {
    const received = Buffer.from(answer());
    expect(() => inFormat(received, asked)).toThrow();
  });

  test("is converted if it has 500 vectors of 1,536 numbers", () => {
    const vector = Array.from({ length: 1_536 }, (_, at) => Math.fround(at / 1_537));
    const data = Array.from({ length: 500 }, (_, index) => ({
      object: "embedding",
      index,
      embedding: vector,
    }));
    const received = Buffer.from(JSON.stringify({ object: "list", data, usage: { prompt_tokens: 1 } }));
    const converted = inFormat(received, "base64");
    expect(JSON.parse(converted.toString()).data).toHaveLength(500);
    expect(JSON.parse(inFormat(converted, "float").toString())).toEqual(JSON.parse(received.toString()));
  });
});

test("evidence of millions of vectors does not count them all", () => {
  expect(describeVectors('"embedding":[1],'.repeat(100_000))).toBe('{"vectors":100000}');
  expect(describeVectors('"embedding":[1],'.repeat(100_001))).toBe('{"vectors":100000,"more":true}');
});

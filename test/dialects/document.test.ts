/** The OpenAPI document describes the endpoints for existing clients: it matches what they send and get. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import Schema from "typebox/schema";
import { startFakeMessages } from "../support/fake-messages.ts";
import { startFakeResponses } from "../support/fake-responses.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

const anthropic = startFakeMessages("sk-upstream");
const openai = startFakeResponses("sk-upstream");
let stage: DialectStage;
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
let document: any;
beforeAll(async () => {
  stage = await openDialectStage({
    providers: `  claude: { kind: anthropic, base_url: ${anthropic.url}, api_key: sk-upstream }
  openai: { kind: openai, base_url: ${openai.url}, api_key: sk-upstream }
`,
  });
  anthropic.script("counted", { message: { input_tokens: 21 } });
  document = (await stage.gateway.call("GET", "/openapi.json")).body;
});
afterAll(async () => {
  await stage.stop();
  await anthropic.close();
  await openai.close();
});

const USER = [{ role: "user", content: "Good morning" }];
const CASES = [
  ["/v1/chat/completions", { model: "up/first", messages: USER }, "OpenAiError", true],
  ["/v1/messages", { model: "up/first", max_tokens: 100, messages: USER }, "AnthropicError", true],
  ["/v1/messages/count_tokens", { model: "claude/counted", messages: USER }, "AnthropicError", false],
  ["/v1/responses", { model: "openai/any", input: "Good morning" }, "OpenAiError", true],
  ["/v1/embeddings", { model: "up/vectors", input: ["one", "two"] }, "OpenAiError", false],
] as const;

/** Whether a value matches a schema of the document. */
const isMatch = (schema: object, value: unknown) => Schema.Check(schema, value);

test.each(CASES)(
  "%s: the request is the dialect's, and errors have its format",
  async (path, body, form, streams) => {
    const operation = document.paths[path].post;
    expect(operation.security).toEqual([{ token: [] }, { api_key: [] }]);
    expect(operation.parameters.map(({ name }: { name: string }) => name)).toContain("gatehouse-agent");
    const schema = operation.requestBody.content["application/json"].schema;
    expect(isMatch(schema, body)).toBe(true);
    expect(isMatch(schema, { ...body, a_field_of_next_year: 1 })).toBe(true);
    expect(isMatch(schema, { ...body, model: undefined })).toBe(false);
    const { 200: answered, default: refused } = operation.responses;
    expect(Object.keys(answered.content)).toEqual(
      streams ? ["application/json", "text/event-stream"] : ["application/json"],
    );
    expect(refused).toEqual({ $ref: `#/components/responses/${form}` });
    const { headers, content } = document.components.responses[form];
    const error = content["application/json"].schema;
    for (const wrong of [{}, { ...body, model: "nobody/knows" }]) {
      const answer = await stage.gateway.call("POST", path, { body: wrong });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(isMatch(error, answer.body)).toBe(true);
      expect(answer.headers.get("content-type")).toBe("application/json");
      for (const name of Object.keys(headers)) expect(answer.headers.get(name)).toBeString();
    }
  },
);

test.each([CASES[0], CASES[1], CASES[2]])("%s: an answer is as described", async (path, body) => {
  const { content, headers } = document.paths[path].post.responses[200];
  const answer = await stage.gateway.call("POST", path, { body });
  expect(answer.status).toBe(200);
  expect(isMatch(content["application/json"].schema, answer.body)).toBe(true);
  expect(isMatch(content["application/json"].schema, {})).toBe(false);
  for (const name of Object.keys(headers)) expect(answer.headers.get(name)).toBeString();
});

test("the list of models accepts the same keys, and reports errors in the format that its client reads", async () => {
  for (const path of ["/v1/models", "/v1/models/{id}"]) {
    const { security, responses } = document.paths[path].get;
    expect(security).toContainEqual({ api_key: [] });
    expect(responses.default).toEqual({ $ref: "#/components/responses/ClientError" });
  }
  const { content } = document.components.responses.ClientError;
  const forms = { "x-stainless-lang": "js", "anthropic-version": "2023-06-01" };
  for (const [name, value] of Object.entries(forms)) {
    const { body } = await stage.gateway.call("GET", "/v1/models/nobody", { headers: { [name]: value } });
    expect(isMatch(content["application/json"].schema, body)).toBe(true);
  }
  const { body } = await stage.gateway.call("GET", "/v1/models/nobody");
  expect(isMatch(content["application/problem+json"].schema, body)).toBe(true);
});

test("stored responses are read, listed and deleted in OpenAI's format", async () => {
  const text = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello" }] };
  const kept = { id: "resp_kept", object: "response", created_at: 1, status: "completed", output: [text] };
  openai.script("kept", {
    response: { ...kept, model: "kept", usage: { input_tokens: 3, output_tokens: 2 } },
  });
  const made = await stage.gateway.call("POST", "/v1/responses", {
    body: { model: "openai/kept", input: "Good morning" },
  });
  expect(made.status).toBe(200);
  for (const [method, path] of [
    ["GET", "/v1/responses/{id}"],
    ["GET", "/v1/responses/{id}/input_items"],
    ["DELETE", "/v1/responses/{id}"],
  ] as const) {
    const { security, responses } = document.paths[path][method.toLowerCase()];
    expect(security).toContainEqual({ api_key: [] });
    expect(responses.default).toEqual({ $ref: "#/components/responses/OpenAiError" });
    const { body, status } = await stage.gateway.call(method, path.replace("{id}", made.body.id));
    expect(status).toBe(200);
    expect(isMatch(responses[200].content["application/json"].schema, body)).toBe(true);
  }
});

test("all other operations report problems", () => {
  for (const [path, item] of Object.entries<Record<string, { responses: { default: object } }>>(
    document.paths,
  )) {
    if (CASES.some(([known]) => known === path) || /^\/v1\/(?:models|responses)/.test(path)) continue;
    for (const { responses } of Object.values(item)) {
      expect([path, responses.default]).toEqual([path, { $ref: "#/components/responses/Problem" }]);
    }
  }
});

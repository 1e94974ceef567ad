/** Clients' calls at the prices of the configuration. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { startFakeMessages } from "../support/fake-messages.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { message, USER } from "./messages-support.ts";

const chat = startFakeModel();
const messages = startFakeMessages("sk-upstream");
let gateway: TestGateway;
let token: string;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: `
providers:
  up: { kind: openai-compatible, base_url: "${chat.url}" }
  claude: { kind: anthropic, base_url: "${messages.url}", api_key: sk-upstream }
models:
  up/priced: { input: 10, output: 20, cached_input: 1, reasoning: 40 }
  claude/priced: { input: 10, output: 20, cached_input: 1, cache_writes: 12.5 }
tiers:
  1: { name: mixed, models: [up/unknown, up/priced] }
  2: { name: unknown, models: [up/unknown] }
prices: { unknown: refuse }
`,
  });
  token = await gateway.token({ scopes: ["models:call"] });
});
afterAll(async () => {
  await gateway.stop();
  await chat.close();
  await messages.close();
});

const openai = () => new OpenAI({ apiKey: token, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
const anthropic = () => new Anthropic({ apiKey: token, baseURL: gateway.url, maxRetries: 0 });
const latest = async () =>
  (await gateway.call("GET", "/v1/ledger?action=model.call&order=desc&limit=1")).body.data[0];

describe("a model without a price is refused and never sent:", () => {
  test.each(["up/unknown", "up/never-heard-of", "tier:2", "unknown"])(
    "%s in a chat completion",
    async (model) => {
      const before = chat.requests.length;
      const asked = openai().chat.completions.create({ model, messages: USER });
      expect(await asked.catch((error: unknown) => error)).toMatchObject({
        status: 422,
        code: "model_unpriced",
      });
      expect(chat.requests.length).toBe(before);
      expect(await latest()).toMatchObject({ outcome: "denied", code: "model_unpriced" });
    },
  );

  test("in embeddings", async () => {
    const asked = openai().embeddings.create({ model: "up/embed", input: "x" });
    expect(await asked.catch((error: unknown) => error)).toMatchObject({
      status: 422,
      code: "model_unpriced",
    });
  });

  test("in messages and in counting their tokens", async () => {
    const request = { model: "claude/unknown", messages: USER };
    const asked = anthropic().messages.create({ ...request, max_tokens: 9 });
    const error = await asked.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 422, error: { type: "error" } });
    const counted = anthropic().messages.countTokens(request);
    expect(await counted.catch((thrown: unknown) => thrown)).toMatchObject({ status: 422 });
    expect(messages.requests).toEqual([]);
  });
});

test("only a tier's models with a price are used", async () => {
  chat.script("priced", { chunks: ["ok"] });
  const before = chat.requests.length;
  await openai().chat.completions.create({ model: "mixed", messages: USER });
  expect(chat.requests.slice(before).map(({ model }) => model)).toEqual(["priced"]);
});

test.each([false, true])("cached input and reasoning of a chat completion (streamed: %p)", async (stream) => {
  chat.script("priced", {
    chunks: ["ok"],
    usage: {
      ...{ prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 600 } },
      ...{ completion_tokens: 100, completion_tokens_details: { reasoning_tokens: 50 } },
    },
  });
  const answer = await openai().chat.completions.create({ model: "up/priced", messages: USER, stream });
  if (stream) for await (const _ of answer as AsyncIterable<unknown>);
  expect(await latest()).toMatchObject({
    credits: 7_600_000,
    detail: { input_tokens: 1_000, output_tokens: 100, cached_tokens: 600, reasoning_tokens: 50 },
  });
});

test("cache writes of a message", async () => {
  const usage = {
    ...{ input_tokens: 100, output_tokens: 10 },
    ...{ cache_read_input_tokens: 600, cache_creation_input_tokens: 300 },
  };
  messages.script("priced", { message: message([{ type: "text", text: "ok" }], usage) });
  await anthropic().messages.create({ model: "claude/priced", max_tokens: 99, messages: USER });
  // 100 × 10 + 600 × 1 + 300 × 12.5 + 10 × 20, for each thousand.
  expect(await latest()).toMatchObject({
    credits: 5_550_000,
    detail: { input_tokens: 1_000, output_tokens: 10, cached_tokens: 600, cache_write_tokens: 300 },
  });
});

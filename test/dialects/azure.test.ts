/** Azure OpenAI speaks OpenAI's dialects itself: with its own key, address and version. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { startRecordingUpstream } from "../support/recording-upstream.ts";

const upstream = startRecordingUpstream();
let gateway: TestGateway;
let clerk: string;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: `
providers:
  az: { kind: azure, base_url: "${upstream.url}/openai/v1", api_key: azure-key-hunter22, api_version: preview }
tiers:
  1: { models: [az/my-gpt] }
`,
  });
  await gateway.agent("clerk", { tier_policy: { models: { deny: ["az/never*"] } } });
  clerk = await gateway.token({ agent: "clerk" });
});
beforeEach(() => {
  upstream.requests.length = 0;
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

const openai = () => new OpenAI({ apiKey: clerk, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
const MESSAGES = [{ role: "user" as const, content: "hello" }];
const USAGE = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
const chunk = (delta: object, finish: string | null, more: object = {}) => ({
  ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "gpt-5" },
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

test("a forbidden deployment is never sent", async () => {
  const asked = openai().chat.completions.create({ model: "az/never-this", messages: MESSAGES });
  expect(await asked.catch((error: unknown) => error)).toMatchObject({
    status: 403,
    code: "model_forbidden",
  });
  expect(upstream.requests).toEqual([]);
});

test("its refusal reaches the client without the key that was sent", async () => {
  upstream.answer(() =>
    Response.json({ error: { message: "no azure-key-hunter22 here", code: "x" } }, { status: 400 }),
  );
  const asked = openai().chat.completions.create({ model: "az/my-gpt", messages: MESSAGES });
  const error = await asked.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 400, code: "provider_refused" });
  expect(String(error)).toContain("no [redacted] here");
});

test("chat completions pass, whole", async () => {
  upstream.answer(() =>
    Response.json({
      ...{ id: "c", object: "chat.completion", created: 1, model: "gpt-5", usage: USAGE },
      choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    }),
  );
  const answer = await openai().chat.completions.create({ model: "az/my-gpt", messages: MESSAGES });
  expect(answer.choices[0]?.message.content).toBe("hi");
  const [sent] = upstream.requests;
  expect(sent?.path).toBe("/openai/v1/chat/completions?api-version=preview");
  expect(sent?.headers["api-key"]).toBe("azure-key-hunter22");
  expect(sent?.headers.authorization).toBeUndefined();
  expect(JSON.parse(sent?.body ?? "")).toEqual({ model: "my-gpt", messages: MESSAGES });
});

test("chat completions pass, streamed", async () => {
  const events = [
    chunk({ content: "hi" }, null),
    chunk({}, "stop"),
    { ...chunk({}, null), choices: [], usage: USAGE },
  ];
  upstream.answer(
    () =>
      new Response(
        `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`,
        {
          headers: { "content-type": "text/event-stream" },
        },
      ),
  );
  const stream = await openai().chat.completions.create({
    model: "az/my-gpt",
    messages: MESSAGES,
    stream: true,
  });
  const texts: unknown[] = [];
  for await (const { choices } of stream) texts.push(choices[0]?.delta.content);
  expect(texts).toEqual(["hi", undefined]);
  const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&order=desc&limit=1");
  expect(body.data[0].detail).toMatchObject({
    dialect: "chat_completions",
    input_tokens: 9,
    output_tokens: 2,
  });
});

test("embeddings pass", async () => {
  upstream.answer(() =>
    Response.json({
      ...{ object: "list", model: "e", usage: { prompt_tokens: 3, total_tokens: 3 } },
      data: [{ object: "embedding", index: 0, embedding: [0.5, 0.25] }],
    }),
  );
  const { data } = await openai().embeddings.create({
    model: "az/my-embedding",
    input: "x",
    encoding_format: "float",
  });
  expect(data[0]?.embedding).toEqual([0.5, 0.25]);
  expect(upstream.requests.map(({ path }) => path)).toEqual(["/openai/v1/embeddings?api-version=preview"]);
});

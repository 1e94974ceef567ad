/** OpenAI's Chat Completions, passed through, with OpenAI's own client. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage();
});
afterAll(() => stage.stop());

function client(apiKey = stage.clerk): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${stage.gateway.url}/v1`, maxRetries: 0 });
}

const MESSAGES = [{ role: "user" as const, content: "Good morning" }];

test("a whole answer is returned, and its intent and outcome are in the ledger", async () => {
  stage.upstream.script("first", {
    chunks: ["Good ", "evening"],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  });
  const { data, response } = await client()
    .chat.completions.create({ model: "gpt-5", messages: MESSAGES })
    .withResponse();
  expect(data.choices[0]?.message.content).toBe("Good evening");
  expect(response.headers.get("gatehouse-model")).toBe("up/first");
  const id = response.headers.get("gatehouse-request-id");
  expect(response.headers.get("x-request-id")).toBe(id);
  const [intent, outcome] = (await stage.entries()).filter((entry) => entry.request_id === id);
  expect(intent).toMatchObject({ phase: "intent", agent: "clerk", model: "up/first", tier: 1 });
  expect(String(intent?.seq)).toBe(response.headers.get("gatehouse-ledger") ?? "");
  expect(outcome).toMatchObject({
    ...{ phase: "outcome", ref: intent?.seq, outcome: "succeeded" },
    detail: { dialect: "chat_completions", attempt: 1, input_tokens: 7, output_tokens: 3, usage: "reported" },
  });
});

test("a streamed answer is returned in its chunks, without usage that was not requested", async () => {
  stage.upstream.script("first", {
    chunks: ["one ", "two ", "three"],
    usage: { prompt_tokens: 4, completion_tokens: 3 },
  });
  const stream = await client().chat.completions.create({
    model: "tier:1",
    messages: MESSAGES,
    stream: true,
  });
  let text = "";
  let chunks = 0;
  for await (const chunk of stream) {
    chunks++;
    expect(chunk.choices).toHaveLength(1);
    text += chunk.choices[0]?.delta.content ?? "";
  }
  expect(text).toBe("one two three");
  expect(chunks).toBeGreaterThanOrEqual(4);
  expect((await stage.entries()).at(-1)).toMatchObject({
    outcome: "succeeded",
    detail: { input_tokens: 4, output_tokens: 3, usage: "reported", first_token_ms: expect.any(Number) },
  });
});

test("the usage chunk reaches a client that requests it", async () => {
  stage.upstream.script("first", { chunks: ["x"], usage: { prompt_tokens: 4, completion_tokens: 1 } });
  const stream = await client().chat.completions.create({
    ...{ model: "tier:1", messages: MESSAGES, stream: true },
    stream_options: { include_usage: true },
  });
  const usages: unknown[] = [];
  for await (const chunk of stream) if (chunk.usage) usages.push(chunk.usage);
  expect(usages).toEqual([expect.objectContaining({ prompt_tokens: 4, completion_tokens: 1 })]);
});

test("a long whole answer is returned byte for byte", async () => {
  const text = "word ".repeat(100_000);
  stage.upstream.script("first", { chunks: [text] });
  const answer = await client().chat.completions.create({ model: "tier:1", messages: MESSAGES });
  expect(answer.choices[0]?.message.content).toBe(text);
});

test("a tool call is returned, whole and streamed", async () => {
  stage.upstream.script("first", { chunks: [], toolCalls: [{ name: "look_up", arguments: { id: 7 } }] });
  const tools = [
    { type: "function" as const, function: { name: "look_up", parameters: { type: "object" } } },
  ];
  const asked = { model: "tier:1", messages: MESSAGES, tools };
  const whole = await client().chat.completions.create(asked);
  expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject({
    function: { name: "look_up", arguments: '{"id":7}' },
  });
  const streamed = await client().chat.completions.stream(asked).finalChatCompletion();
  expect(streamed.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: "look_up" } });
  expect(streamed.choices[0]?.finish_reason).toBe("tool_calls");
});

/** Amazon Bedrock behind OpenAI's and Anthropic's clients: the requests that it gets, and its answers. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { BEDROCK, frames } from "../models/providers/scripts.ts";
import { bedrockEvent } from "../support/aws.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { startRecordingUpstream } from "../support/recording-upstream.ts";

const CLAUDE = "aws/eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
const NOVA = "aws/amazon.nova-pro-v1:0";
const upstream = startRecordingUpstream();
let gateway: TestGateway;
let clerk: string;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: `
providers:
  aws: { kind: bedrock, region: eu-central-1, base_url: "${upstream.url}", access_key_id: AKIAEXAMPLEEXAMPLE, secret_access_key: aws-secret-hunter22 }
tiers:
  1: { models: ["${NOVA}"] }
`,
  });
  await gateway.agent("clerk");
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
const anthropic = () => new Anthropic({ apiKey: clerk, baseURL: gateway.url, maxRetries: 0 });
const MESSAGES = [{ role: "user" as const, content: "hello" }];
const sent = () => JSON.parse(upstream.requests.at(-1)?.body ?? "");
const outcome = async () => {
  const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=1&order=desc");
  return body.data[0];
};

test.each([CLAUDE, NOVA])("%s answers chat completions and messages, whole and streamed", async (model) => {
  const asked = { model, messages: MESSAGES };
  const usage = { input_tokens: 1_000, output_tokens: 50, cached_tokens: 600, usage: "reported" };
  upstream.answer(() => BEDROCK.whole("hi"));
  const { choices } = await openai().chat.completions.create(asked);
  expect(choices).toMatchObject([{ message: { content: "hi" }, finish_reason: "stop" }]);
  expect(sent()).toMatchObject({ messages: [{ role: "user", content: [{ text: "hello" }] }] });
  expect((await outcome()).detail).toMatchObject({ ...usage, dialect: "chat_completions" });
  const message = await anthropic().messages.create({ ...asked, max_tokens: 99 });
  expect(message).toMatchObject({ content: [{ type: "text", text: "hi" }], stop_reason: "end_turn" });
  expect(sent().inferenceConfig).toEqual({ maxTokens: 99 });

  upstream.answer(() => BEDROCK.streamed("hi"));
  const texts: string[] = [];
  for await (const chunk of await openai().chat.completions.create({ ...asked, stream: true })) {
    texts.push(chunk.choices[0]?.delta.content ?? "");
  }
  expect(texts.join("")).toBe("hi");
  const stream = anthropic().messages.stream({ ...asked, max_tokens: 99 });
  expect(await stream.finalText()).toBe("hi");
  expect((await outcome()).detail).toMatchObject({ ...usage, dialect: "messages" });
});

test("a tool call passes there and back", async () => {
  const tool = { name: "look", input_schema: { type: "object" as const } };
  const tools = [{ type: "function" as const, function: { name: "look", parameters: tool.input_schema } }];
  upstream.answer(() => BEDROCK.calling({ name: "look", arguments: { at: "x" } }));
  const stream = anthropic().messages.stream({
    model: CLAUDE,
    messages: MESSAGES,
    max_tokens: 9,
    tools: [tool],
  });
  const { content, stop_reason } = await stream.finalMessage();
  expect(content).toMatchObject([{ type: "tool_use", name: "look", input: { at: "x" } }]);
  expect(stop_reason).toBe("tool_use");
  const call = { id: "tooluse_1", type: "function" as const, function: { name: "look", arguments: "{}" } };
  const messages = [
    ...MESSAGES,
    { role: "assistant" as const, tool_calls: [call] },
    { role: "tool" as const, tool_call_id: "tooluse_1", content: "seen" },
  ];
  upstream.answer(() => BEDROCK.whole("hi"));
  await openai().chat.completions.create({ model: NOVA, messages, tools });
  expect(sent().messages[2].content).toEqual([
    { toolResult: { toolUseId: "tooluse_1", content: [{ text: "seen" }] } },
  ]);

  // The AI SDK would leave out the call and its result.
  const asked = openai().chat.completions.create({ model: NOVA, messages });
  expect(await asked.catch((error: unknown) => error)).toMatchObject({
    ...{ status: 400, code: "unsupported_parameter", param: "tools" },
  });
  expect(upstream.requests).toHaveLength(2);
});

test("the stop sequence that ended an answer is named if Amazon reports it, whole and streamed", async () => {
  const additionalModelResponseFields = { delta: { stop_sequence: "END" } };
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const asked = { model: CLAUDE, messages: MESSAGES, max_tokens: 9, stop_sequences: ["END", "STOP"] };
  const named = { stop_reason: "stop_sequence", stop_sequence: "END" };
  const content = [{ text: "hi" }];
  upstream.answer(() =>
    Response.json({
      ...{ output: { message: { role: "assistant", content } }, stopReason: "stop_sequence", usage },
      additionalModelResponseFields,
    }),
  );
  expect(await anthropic().messages.create(asked)).toMatchObject(named);
  expect(sent().inferenceConfig.stopSequences).toEqual(["END", "STOP"]);
  upstream.answer(() =>
    frames([
      bedrockEvent("messageStart", { role: "assistant" }),
      bedrockEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "hi" } }),
      bedrockEvent("contentBlockStop", { contentBlockIndex: 0 }),
      bedrockEvent("messageStop", { stopReason: "stop_sequence", additionalModelResponseFields }),
      bedrockEvent("metadata", { usage }),
    ]),
  );
  expect(await anthropic().messages.stream(asked).finalMessage()).toMatchObject(named);

  upstream.answer(() => BEDROCK.whole("hi"));
  const other = await anthropic().messages.create(asked);
  expect(other).toMatchObject({ stop_reason: "end_turn", stop_sequence: null });
});

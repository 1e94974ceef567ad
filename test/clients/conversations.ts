/** A question with a tool, asked by each client in the way that its own documentation shows. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { ChatAnthropic } from "@langchain/anthropic";
import type { AIMessageChunk } from "@langchain/core/messages";
import { tool as langChainTool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, tool as agentsTool, OpenAIProvider, Runner } from "@openai/agents";
import { tool as aiTool, generateText, isStepCount, type LanguageModel, streamText } from "ai";
import OpenAI from "openai";
import { z } from "zod";

export interface ClientSettings {
  /** As `http://127.0.0.1:8420`. */
  readonly base: string;
  readonly apiKey: string;
  readonly isStream: boolean;
}

/** The function of the client's tool. */
export type LookUp = (id: number) => string;

/** @returns the text of the last answer */
export type Conversation = (settings: ClientSettings, lookUp: LookUp) => Promise<string>;

const QUESTION = "Where is the key?";
const NAME = "look_up";
const DESCRIPTION = "Looks up an object.";
const INPUT = z.object({ id: z.number() });
const SCHEMA = { type: "object" as const, properties: { id: { type: "number" } }, required: ["id"] };
const GPT = "gpt-5";
const CLAUDE = "claude-sonnet-5";

function openai({ base, apiKey }: ClientSettings): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${base}/v1`, maxRetries: 0 });
}

const openAiChat: Conversation = async (settings, lookUp) => {
  const { completions } = openai(settings).chat;
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: QUESTION }];
  const tools = [{ type: "function" as const, function: { name: NAME, parameters: SCHEMA } }];
  for (;;) {
    const request = { model: GPT, messages, tools };
    const { choices } = settings.isStream
      ? await completions.stream(request).finalChatCompletion()
      : await completions.create(request);
    const message = choices[0]?.message;
    if (!message?.tool_calls) return message?.content ?? "";
    messages.push(message);
    for (const call of message.tool_calls) {
      if (call.type !== "function") throw new Error(`the model called ${call.type}`);
      const content = lookUp(INPUT.parse(JSON.parse(call.function.arguments)).id);
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
};

const openAiResponses: Conversation = async (settings, lookUp) => {
  const { responses } = openai(settings);
  const tools = [{ type: "function" as const, name: NAME, parameters: SCHEMA, strict: false }];
  let input: OpenAI.Responses.ResponseInput = [{ role: "user", content: QUESTION }];
  let previous: string | null = null;
  for (;;) {
    const request = { model: GPT, input, tools, previous_response_id: previous };
    const response: OpenAI.Responses.Response = settings.isStream
      ? await responses.stream(request).finalResponse()
      : await responses.create(request);
    const calls = response.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return response.output_text;
    previous = response.id;
    input = calls.map((call) => ({
      type: "function_call_output",
      call_id: call.call_id,
      output: lookUp(INPUT.parse(JSON.parse(call.arguments)).id),
    }));
  }
};

const anthropic: Conversation = async ({ base, apiKey, isStream }, lookUp) => {
  const client = new Anthropic({ apiKey, baseURL: base, maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: QUESTION }];
  const tools = [{ name: NAME, input_schema: SCHEMA }];
  for (;;) {
    const request = { model: CLAUDE, max_tokens: 500, messages, tools };
    const { content, role } = isStream
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request);
    const calls = content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) return content.map((block) => (block.type === "text" ? block.text : "")).join("");
    messages.push({ role, content });
    const results = calls.map(({ id, input }) => ({
      ...{ type: "tool_result" as const, tool_use_id: id },
      content: lookUp(INPUT.parse(input).id),
    }));
    messages.push({ role: "user", content: results });
  }
};

function aiSdk(modelOf: (settings: ClientSettings) => LanguageModel): Conversation {
  return async (settings, lookUp) => {
    const look_up = aiTool({ description: DESCRIPTION, inputSchema: INPUT, execute: ({ id }) => lookUp(id) });
    const request = {
      ...{ model: modelOf(settings), prompt: QUESTION, maxRetries: 0 },
      ...{ tools: { look_up }, stopWhen: isStepCount(3) },
    };
    if (!settings.isStream) return (await generateText(request)).text;
    const errors: unknown[] = [];
    const { text } = streamText({ ...request, onError: ({ error }) => void errors.push(error) });
    const answer = await text;
    if (errors.length > 0) throw errors[0];
    return answer;
  };
}

const aiOpenAi = (settings: ClientSettings) =>
  createOpenAI({ apiKey: settings.apiKey, baseURL: `${settings.base}/v1` });
const aiAnthropic = ({ apiKey, base }: ClientSettings) =>
  createAnthropic({ apiKey, baseURL: `${base}/v1` })(CLAUDE);

function langChain(modelOf: (settings: ClientSettings) => ChatOpenAI | ChatAnthropic): Conversation {
  return async (settings, lookUp) => {
    const look = langChainTool(({ id }: z.infer<typeof INPUT>) => lookUp(id), {
      ...{ name: NAME, description: DESCRIPTION, schema: INPUT },
    });
    const model = modelOf(settings).bindTools([look]);
    const messages: Parameters<typeof model.invoke>[0] & unknown[] = [["human", QUESTION]];
    for (;;) {
      const message = settings.isStream
        ? await joined(await model.stream(messages))
        : await model.invoke(messages);
      if (!message.tool_calls?.length) return message.text;
      messages.push(message);
      for (const call of message.tool_calls) messages.push(await look.invoke({ ...call, type: "tool_call" }));
    }
  };
}

async function joined(chunks: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  let whole: AIMessageChunk | undefined;
  for await (const chunk of chunks) whole = whole?.concat(chunk) ?? chunk;
  if (!whole) throw new Error("the stream was empty");
  return whole;
}

const openAiAgents: Conversation = async (settings, lookUp) => {
  const look = agentsTool({
    ...{ name: NAME, description: DESCRIPTION, parameters: INPUT },
    execute: async ({ id }) => lookUp(id),
  });
  const agent = new Agent({ name: "Clerk", model: GPT, tools: [look] });
  const modelProvider = new OpenAIProvider({ openAIClient: openai(settings) });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  if (!settings.isStream) return (await runner.run(agent, QUESTION)).finalOutput ?? "";
  const result = await runner.run(agent, QUESTION, { stream: true });
  await result.completed;
  return result.finalOutput ?? "";
};

const CHAT = "/v1/chat/completions";
const MESSAGES = "/v1/messages";
const RESPONSES = "/v1/responses";

/** Each client with the path that it requests. */
export const CONVERSATIONS: readonly (readonly [client: string, path: string, Conversation])[] = [
  ["openai, Chat Completions", CHAT, openAiChat],
  ["openai, Responses", RESPONSES, openAiResponses],
  ["@anthropic-ai/sdk", MESSAGES, anthropic],
  ["ai with @ai-sdk/openai, Chat Completions", CHAT, aiSdk((settings) => aiOpenAi(settings).chat(GPT))],
  ["ai with @ai-sdk/openai, Responses", RESPONSES, aiSdk((settings) => aiOpenAi(settings)(GPT))],
  ["ai with @ai-sdk/anthropic", MESSAGES, aiSdk(aiAnthropic)],
  [
    "@langchain/openai",
    CHAT,
    langChain(({ apiKey, base }) => {
      return new ChatOpenAI({ apiKey, model: GPT, configuration: { baseURL: `${base}/v1` }, maxRetries: 0 });
    }),
  ],
  [
    "@langchain/anthropic",
    MESSAGES,
    langChain(({ apiKey, base }) => {
      return new ChatAnthropic({ apiKey, model: CLAUDE, anthropicApiUrl: base, maxRetries: 0 });
    }),
  ],
  ["@openai/agents", RESPONSES, openAiAgents],
];

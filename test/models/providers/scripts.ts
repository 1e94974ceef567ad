/**
 * Answers of the providers azure, bedrock and vertex, with and without streaming, each in the provider's own form.
 */
import { bedrockEvent } from "../../support/aws.ts";

export interface ScriptedTool {
  readonly name: string;
  readonly arguments: object;
}

/** One kind's answers to a request. Each reports 1,000 tokens sent, 600 of them cached, and 50 received. */
export interface KindScript {
  whole(text: string): Response;
  streamed(text: string): Response;
  calling(tool: ScriptedTool): Response;
  /** A stream that ends in the middle of an answer. */
  cut(text: string): Response;
  failing(status: number, message: string): Response;
}

const sse = (events: readonly object[]) =>
  new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""), {
    headers: { "content-type": "text/event-stream" },
  });

/** OpenAI's Responses, as implemented by Azure. */
export const AZURE: KindScript = {
  whole: (text) => Response.json({ ...responseHead("completed"), ...responseEnd([message(text)]) }),
  streamed: (text) => sse([...responseStart(), ...messageEvents(text), responseCompleted([message(text)])]),
  calling: ({ name, arguments: input }) => {
    const item = { type: "function_call", id: "fc_1", call_id: "call_1", name, status: "completed" };
    const args = JSON.stringify(input);
    const at = { output_index: 0, item_id: "fc_1" };
    const done = { ...item, arguments: args };
    return sse([
      ...responseStart(),
      { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "" } },
      { type: "response.function_call_arguments.delta", ...at, delta: args },
      { type: "response.function_call_arguments.done", ...at, arguments: args },
      { type: "response.output_item.done", output_index: 0, item: done },
      responseCompleted([done]),
    ]);
  },
  cut: (text) => sse([...responseStart(), ...messageEvents(text).slice(0, 3)]),
  failing: (status, text) =>
    Response.json({ error: { message: text, type: "x", param: null, code: null } }, { status }),
};

function responseHead(status: string) {
  return { id: "resp_1", object: "response", created_at: 1, model: "gpt-5", status };
}

function responseEnd(output: readonly object[]) {
  const usage = {
    ...{ input_tokens: 1_000, input_tokens_details: { cached_tokens: 600 } },
    ...{ output_tokens: 50, output_tokens_details: { reasoning_tokens: 20 }, total_tokens: 1_050 },
  };
  return { output, usage, incomplete_details: null };
}

function message(text: string) {
  const content = [{ type: "output_text", text, annotations: [] }];
  return { type: "message", id: "msg_1", role: "assistant", status: "completed", content };
}

function responseStart(): object[] {
  return [{ type: "response.created", sequence_number: 0, response: responseHead("in_progress") }];
}

function messageEvents(text: string): object[] {
  const item = { ...message(text), status: "in_progress", content: [] };
  return [
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: text },
    { type: "response.output_item.done", output_index: 0, item: message(text) },
  ];
}

function responseCompleted(output: readonly object[]) {
  const response = { ...responseHead("completed"), ...responseEnd(output) };
  return { type: "response.completed", sequence_number: 9, response };
}

/** Amazon Bedrock's Converse. */
export const BEDROCK: KindScript = {
  whole: (text) =>
    Response.json({
      output: { message: { role: "assistant", content: [{ text }] } },
      ...{ stopReason: "end_turn", usage: BEDROCK_USAGE, metrics: { latencyMs: 1 } },
    }),
  streamed: (text) => frames([...bedrockText(text), ...bedrockEnd("end_turn")]),
  calling: ({ name, arguments: input }) =>
    frames([
      bedrockEvent("messageStart", { role: "assistant" }),
      bedrockEvent("contentBlockStart", {
        contentBlockIndex: 0,
        start: { toolUse: { toolUseId: "tooluse_1", name } },
      }),
      bedrockEvent("contentBlockDelta", {
        contentBlockIndex: 0,
        delta: { toolUse: { input: JSON.stringify(input) } },
      }),
      bedrockEvent("contentBlockStop", { contentBlockIndex: 0 }),
      ...bedrockEnd("tool_use"),
    ]),
  cut: (text) => frames(bedrockText(text).slice(0, 2)),
  failing: (status, text) => Response.json({ message: text }, { status }),
};

const BEDROCK_USAGE = {
  ...{ inputTokens: 400, outputTokens: 50, totalTokens: 1_050 },
  ...{ cacheReadInputTokens: 600, cacheWriteInputTokens: 0 },
};

export function frames(parts: readonly Uint8Array[]): Response {
  return new Response(Buffer.concat(parts), {
    headers: { "content-type": "application/vnd.amazon.eventstream" },
  });
}

function bedrockText(text: string): Buffer[] {
  return [
    bedrockEvent("messageStart", { role: "assistant" }),
    bedrockEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text } }),
    bedrockEvent("contentBlockStop", { contentBlockIndex: 0 }),
  ];
}

function bedrockEnd(stopReason: string): Buffer[] {
  return [
    bedrockEvent("messageStop", { stopReason }),
    bedrockEvent("metadata", { usage: BEDROCK_USAGE, metrics: { latencyMs: 1 } }),
  ];
}

/** Gemini, as served by Vertex AI. */
export const VERTEX: KindScript = {
  whole: (text) => Response.json(geminiChunk([{ text }], "STOP")),
  streamed: (text) => sse([geminiChunk([{ text }]), geminiChunk([{ text: "" }], "STOP")]),
  calling: ({ name, arguments: args }) => sse([geminiChunk([{ functionCall: { name, args } }], "STOP")]),
  cut: (text) => sse([geminiChunk([{ text }])]),
  failing: (status, text) =>
    Response.json({ error: { code: status, message: text, status: "X" } }, { status }),
};

function geminiChunk(parts: readonly object[], finishReason?: string) {
  return {
    candidates: [
      {
        content: { role: "model", parts },
        index: 0,
        ...(finishReason === undefined ? {} : { finishReason }),
      },
    ],
    usageMetadata: {
      ...{ promptTokenCount: 1_000, cachedContentTokenCount: 600, candidatesTokenCount: 30 },
      ...{ thoughtsTokenCount: 20, totalTokenCount: 1_050 },
    },
  };
}

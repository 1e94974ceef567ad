/**
 * A scripted provider with the APIs of OpenAI and Anthropic on a real port. It requests one call of a client's tool,
 * and then answers with the tool's result, or with no result if there are no tools.
 */

export interface ToolProvider {
  /** The base URL for the configuration, ending in `/v1`. */
  readonly url: string;
  /** The paths that were requested, in order. */
  readonly paths: readonly string[];
  close(): Promise<void>;
}

/** The behaviour of the provider's model. */
export interface ToolScript {
  /** The tool that it calls. */
  readonly tool: string;
  readonly input: object;
}

interface Turn {
  readonly isStream: boolean;
  readonly model: string;
  /** The tool's result; undefined if the tool has not been called. */
  readonly result: string | undefined;
}

/** How an API reads a request and writes an answer. */
interface Api {
  resultOf(body: Body): unknown;
  whole(turn: Turn, script: ToolScript): object;
  /** The lines of each event, without the blank line that ends it. */
  streamed(turn: Turn, script: ToolScript): readonly string[];
}

type Body = Readonly<Record<string, unknown>>;

export function startToolProvider(script: ToolScript): ToolProvider {
  const paths: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      paths.push(pathname);
      const api = APIS[pathname];
      if (!api) return Response.json({ error: { message: `no script for ${pathname}` } }, { status: 404 });
      const body: Body = JSON.parse(await request.text());
      const result = Array.isArray(body.tools) ? api.resultOf(body) : "nothing";
      const turn: Turn = {
        isStream: body.stream === true,
        model: String(body.model),
        result: result === undefined ? undefined : textOf(result),
      };
      if (!turn.isStream) return Response.json(api.whole(turn, script));
      return new Response(inParts(api.streamed(turn, script)), {
        headers: { "content-type": "text/event-stream" },
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, paths, close: () => server.stop(true) };
}

/** Each event in a separate write. */
function inParts(events: readonly string[]): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(1);
      const event = events[next++];
      if (event === undefined) controller.close();
      else controller.enqueue(Buffer.from(`${event}\n\n`));
    },
  });
}

/** A tool's result, which clients send as text or as a list of parts. */
function textOf(result: unknown): string {
  if (typeof result === "string") return result;
  if (!Array.isArray(result)) return JSON.stringify(result);
  return result.map((part: Body) => String(part.text)).join("");
}

function answerTo(result: string): readonly string[] {
  return ["The tool ", `returned: ${result}`];
}

function listOf(value: unknown): readonly Body[] {
  return Array.isArray(value) ? value : [];
}

const CHAT: Api = {
  resultOf: ({ messages }) => listOf(messages).findLast(({ role }) => role === "tool")?.content,
  whole({ model, result }, { tool, input }) {
    const called = { name: tool, arguments: JSON.stringify(input) };
    const message =
      result === undefined
        ? { content: null, tool_calls: [{ id: "call_1", type: "function", function: called }] }
        : { content: answerTo(result).join("") };
    return {
      ...{ id: "chatcmpl-1", object: "chat.completion", created: 1_790_000_000, model },
      choices: [
        {
          ...{ index: 0, logprobs: null, finish_reason: result === undefined ? "tool_calls" : "stop" },
          message: { role: "assistant", refusal: null, ...message },
        },
      ],
      usage: { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 },
    };
  },
  streamed({ model, result }, { tool, input }) {
    const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_790_000_000, model };
    const chunk = (delta: object, finish: string | null = null) =>
      `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] })}`;
    const part = (given: object) => chunk({ tool_calls: [{ index: 0, ...given }] });
    const text = JSON.stringify(input);
    const deltas =
      result === undefined
        ? [
            part({ id: "call_1", type: "function", function: { name: tool, arguments: "" } }),
            part({ function: { arguments: text.slice(0, 4) } }),
            part({ function: { arguments: text.slice(4) } }),
          ]
        : answerTo(result).map((content) => chunk({ content }));
    const usage = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 };
    return [
      chunk({ role: "assistant", content: result === undefined ? null : "" }),
      ...deltas,
      chunk({}, result === undefined ? "tool_calls" : "stop"),
      `data: ${JSON.stringify({ ...head, choices: [], usage })}`,
      "data: [DONE]",
    ];
  },
};

const MESSAGES: Api = {
  resultOf({ messages }) {
    const blocks = listOf(messages).flatMap(({ content }) => listOf(content));
    return blocks.findLast(({ type }) => type === "tool_result")?.content;
  },
  whole({ model, result }, script) {
    return {
      ...messageHead(model),
      content: [block(result, script)],
      stop_reason: result === undefined ? "tool_use" : "end_turn",
      usage: { input_tokens: 20, output_tokens: 9 },
    };
  },
  streamed({ model, result }, { tool, input }) {
    const event = (type: string, fields: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}`;
    const text = JSON.stringify(input);
    const deltas =
      result === undefined
        ? [text.slice(0, 4), text.slice(4)].map((json) => ({ type: "input_json_delta", partial_json: json }))
        : answerTo(result).map((part) => ({ type: "text_delta", text: part }));
    const begun = result === undefined ? { ...toolUse(tool), input: {} } : { type: "text", text: "" };
    const usage = { input_tokens: 20, output_tokens: 1 };
    return [
      event("message_start", { message: { ...messageHead(model), usage } }),
      event("content_block_start", { index: 0, content_block: begun }),
      ...deltas.map((delta) => event("content_block_delta", { index: 0, delta })),
      event("content_block_stop", { index: 0 }),
      event("message_delta", {
        delta: { stop_reason: result === undefined ? "tool_use" : "end_turn", stop_sequence: null },
        usage: { output_tokens: 9 },
      }),
      event("message_stop", {}),
    ];
  },
};

function messageHead(model: string) {
  const empty = { content: [], stop_reason: null, stop_sequence: null };
  return { id: "msg_1", type: "message", role: "assistant", model, ...empty };
}

function block(result: string | undefined, { tool, input }: ToolScript) {
  return result === undefined
    ? { ...toolUse(tool), input }
    : { type: "text", text: answerTo(result).join("") };
}

function toolUse(name: string) {
  return { type: "tool_use", id: "toolu_1", name };
}

const RESPONSES: Api = {
  resultOf: ({ input }) => listOf(input).findLast(({ type }) => type === "function_call_output")?.output,
  whole(turn, script) {
    return response(turn, "completed", [item(turn, script)]);
  },
  streamed(turn, script) {
    let number = 0;
    const event = (type: string, fields: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...fields })}`;
    const done = item(turn, script);
    const begun = {
      ...done,
      status: "in_progress",
      ...("content" in done ? { content: [] } : { arguments: "" }),
    };
    const at = { item_id: done.id, output_index: 0 };
    return [
      event("response.created", { response: response(turn, "in_progress", []) }),
      event("response.in_progress", { response: response(turn, "in_progress", []) }),
      event("response.output_item.added", { output_index: 0, item: begun }),
      ...(turn.result === undefined
        ? argumentEvents(event, at, script)
        : textEvents(event, { ...at, content_index: 0 }, turn.result)),
      event("response.output_item.done", { output_index: 0, item: done }),
      event("response.completed", { response: response(turn, "completed", [done]) }),
    ];
  },
};

type WriteEvent = (type: string, fields: object) => string;

function argumentEvents(event: WriteEvent, at: object, { tool, input }: ToolScript): string[] {
  const text = JSON.stringify(input);
  const type = "response.function_call_arguments";
  return [
    event(`${type}.delta`, { ...at, delta: text.slice(0, 4) }),
    event(`${type}.delta`, { ...at, delta: text.slice(4) }),
    event(`${type}.done`, { ...at, name: tool, arguments: text }),
  ];
}

function textEvents(event: WriteEvent, at: object, result: string): string[] {
  const text = answerTo(result).join("");
  return [
    event("response.content_part.added", { ...at, part: outputText("") }),
    ...answerTo(result).map((delta) => event("response.output_text.delta", { ...at, delta, logprobs: [] })),
    event("response.output_text.done", { ...at, text, logprobs: [] }),
    event("response.content_part.done", { ...at, part: outputText(text) }),
  ];
}

function outputText(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function item({ result }: Turn, { tool, input }: ToolScript) {
  if (result === undefined) {
    const called = { call_id: "call_1", name: tool, arguments: JSON.stringify(input) };
    return { type: "function_call", id: "fc_1", status: "completed", ...called };
  }
  const content = [outputText(answerTo(result).join(""))];
  return { type: "message", id: "msg_1", role: "assistant", status: "completed", content };
}

/** Each turn has its own id, because clients refer to the last one. */
function response({ model, result }: Turn, status: string, output: readonly object[]) {
  return {
    ...{ id: result === undefined ? "resp_1" : "resp_2", object: "response", created_at: 1_790_000_000 },
    ...{ model, status, output, error: null, incomplete_details: null, instructions: null, metadata: {} },
    ...{ parallel_tool_calls: true, temperature: 1, tool_choice: "auto", tools: [], top_p: 1 },
    usage:
      status === "completed"
        ? {
            ...{ input_tokens: 20, output_tokens: 9, total_tokens: 29 },
            ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
          }
        : null,
  };
}

const APIS: Readonly<Record<string, Api>> = {
  "/v1/chat/completions": CHAT,
  "/v1/messages": MESSAGES,
  "/v1/responses": RESPONSES,
};

import OpenAI from "openai";
import { type FakeResponses, startFakeResponses } from "../support/fake-responses.ts";
import { startGateway, type TestGateway, type TestGatewayOptions } from "../support/gateway.ts";
import { storedText } from "./messages-support.ts";
import type { LedgerRow } from "./support.ts";

export interface ResponsesStage {
  readonly upstream: FakeResponses;
  readonly gateway: TestGateway;
  /** A call of a path below `/v1/responses`. */
  ask(
    method: string,
    path: string,
    token?: string,
    headers?: Record<string, string>,
  ): Promise<Awaited<ReturnType<TestGateway["call"]>>>;
  /** A token of the agent `clerk`, which may use tier 1 and no model `up/never*`. */
  readonly clerk: string;
  /** OpenAI's own client. */
  client(apiKey?: string): OpenAI;
  /** A request with the given bytes. */
  post(
    body: string | Uint8Array,
    options?: {
      readonly token?: string;
      readonly headers?: Record<string, string>;
      /** Called when the head of the answer has arrived. */
      begun?(): void;
    },
  ): Promise<{ response: Response; bytes: Buffer }>;
  /** The entries of a request, oldest first. */
  entriesOf(response: Pick<Response, "headers">, action?: string): Promise<LedgerRow[]>;
  /** A text that an entry contains only as a hash. */
  text(entry: LedgerRow | undefined, kind: "input" | "output"): string | undefined;
  stop(): Promise<void>;
}

const YAML = (url: string, timeoutMs: number) => `
providers:
  up: { kind: openai, base_url: ${url}, api_key: sk-upstream, timeout_ms: ${timeoutMs} }
  second: { kind: openai, base_url: ${url}, api_key: sk-upstream }
  chat: { kind: openai-compatible, base_url: ${url}, api_key: sk-upstream }
models:
  up/priced: { input: 1, output: 2 }
  second/priced: { input: 1, output: 2 }
tiers:
  1: { name: small, models: [up/first, up/next] }
  2: { name: large, models: [up/large] }
  3: { name: mixed, models: [up/first, second/other] }
drain_seconds: 1
`;

/** A gateway in front of a scripted upstream that speaks Responses. */
export async function openResponsesStage({
  timeoutMs = 60_000,
  settings = "",
  ...options
}: { timeoutMs?: number; settings?: string } & TestGatewayOptions = {}): Promise<ResponsesStage> {
  const upstream = startFakeResponses("sk-upstream");
  const gateway = await startGateway({ yaml: YAML(upstream.url, timeoutMs) + settings, ...options });
  await gateway.agent("clerk", {
    tier_policy: { tiers: [1, 3], models: { allow: ["*"], deny: ["up/never*"] } },
  });
  const clerk = await gateway.token({ agent: "clerk" });
  return {
    ...{ upstream, gateway, clerk },
    client: (apiKey = clerk) => new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 }),
    async post(body, { token = clerk, headers = {}, begun } = {}) {
      const response = await fetch(`${gateway.url}/v1/responses`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
        body,
      });
      begun?.();
      return { response, bytes: Buffer.from(await response.arrayBuffer()) };
    },
    ask: (method, path, token = clerk, headers = {}) =>
      gateway.call(method, `/v1/responses${path}`, { token, headers }),
    async entriesOf({ headers }, action = "model.call") {
      const { body } = await gateway.call("GET", `/v1/ledger?action=${action}&limit=200&order=desc`);
      const id = headers.get("gatehouse-request-id");
      return body.data.filter((entry: LedgerRow) => entry.request_id === id).reverse();
    },
    text: (entry, kind) => storedText(gateway.dataDir, entry, kind),
    async stop() {
      await gateway.stop();
      await upstream.close();
    },
  };
}

let made = 0;
/** An id that no other response of the tests has. */
export const freshId = (prefix = "resp") => `${prefix}_up${++made}`;

export const USAGE = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 12,
};

/** A message of the model. */
export function textItem(text: string, id = freshId("msg")): object {
  const content = [{ type: "output_text", text, annotations: [], logprobs: [] }];
  return { id, type: "message", role: "assistant", status: "completed", content };
}

/** A call of one of the client's functions. */
export function callItem(name: string, input: object, id = freshId("fc")): object {
  const call = { name, arguments: JSON.stringify(input), call_id: `call_${id}`, status: "completed" };
  return { id, type: "function_call", ...call };
}

/** A whole response. */
export function responseOf(output: readonly object[], more: object = {}): Record<string, unknown> {
  return {
    ...{
      id: freshId(),
      object: "response",
      created_at: 1_790_000_000,
      status: "completed",
      model: "upstream",
    },
    ...{ error: null, incomplete_details: null, instructions: null, metadata: {}, parallel_tool_calls: true },
    ...{ temperature: 1, tool_choice: "auto", tools: [], top_p: 1, usage: USAGE, output, ...more },
  };
}

/** The events of a streamed response with these items. Texts arrive in two parts. */
export function eventsOf(response: Record<string, unknown>): object[] {
  const { output, usage: _, ...rest } = response as { output: Record<string, unknown>[]; usage: unknown };
  const begun = { ...rest, status: "in_progress", output: [] };
  const events: object[] = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
  ];
  for (const [index, item] of output.entries()) events.push(...itemEvents(item, index));
  events.push({ type: `response.${response.status}`, response });
  return events.map((event, sequence) => ({ ...event, sequence_number: sequence }));
}

function itemEvents(item: Record<string, unknown>, index: number): object[] {
  const at = { item_id: item.id, output_index: index };
  const halves = (text: string) => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];
  const bare = { ...item, status: "in_progress" };
  if (item.type === "message") {
    const parts = item.content as { text: string }[];
    return [
      { type: "response.output_item.added", output_index: index, item: { ...bare, content: [] } },
      ...parts.flatMap((part, content) => {
        const place = { ...at, content_index: content };
        const empty = { ...part, text: "" };
        return [
          { type: "response.content_part.added", ...place, part: empty },
          ...halves(part.text).map((delta) => ({
            ...{ type: "response.output_text.delta", ...place, delta, logprobs: [] },
          })),
          { type: "response.output_text.done", ...place, text: part.text, logprobs: [] },
          { type: "response.content_part.done", ...place, part },
        ];
      }),
      { type: "response.output_item.done", output_index: index, item },
    ];
  }
  const input = String(item.arguments);
  return [
    { type: "response.output_item.added", output_index: index, item: { ...bare, arguments: "" } },
    ...halves(input).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
    { type: "response.function_call_arguments.done", ...at, name: item.name, arguments: input },
    { type: "response.output_item.done", output_index: index, item },
  ];
}

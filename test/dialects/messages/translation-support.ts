import Anthropic from "@anthropic-ai/sdk";
import { type FakeGoogle, startFakeGoogle } from "../../support/fake-google.ts";
import { type FakeModel, startFakeModel } from "../../support/fake-model.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import type { LedgerRow } from "../support.ts";

export interface TranslationStage {
  /** Speaks Chat Completions, as `up` (an openai-compatible provider). */
  readonly chat: FakeModel;
  /** Speaks Gemini, as `gemini`. */
  readonly google: FakeGoogle;
  /** Speaks Responses, as `work` (an openai provider). */
  readonly responses: FakeResponses;
  readonly gateway: TestGateway;
  /** Anthropic's own client, as the agent `clerk`, which may not use models that are called `never`. */
  readonly client: Anthropic;
  post(body: object, path?: string): Promise<{ status: number; headers: Headers; text: string }>;
  /** The entries of the last request with this action. */
  lastEntries(action?: string): Promise<LedgerRow[]>;
  stop(): Promise<void>;
}

const YAML = (chat: string, google: string, responses: string) => `
providers:
  up: { kind: openai-compatible, base_url: ${chat}, api_key: sk-up }
  gemini: { kind: google, base_url: ${google}, api_key: sk-gemini }
  work: { kind: openai, base_url: ${responses}, api_key: sk-work }
tiers:
  1: { name: small, models: [builtin/extractive] }
  2: { name: mixed, models: [gemini/first, up/first] }
aliases:
  "claude-*": tier:2
drain_seconds: 1
`;

/** A gateway in front of scripted upstreams that do not speak Messages. */
export async function openTranslationStage(): Promise<TranslationStage> {
  const chat = startFakeModel({ apiKey: "sk-up" });
  const google = startFakeGoogle("sk-gemini");
  const responses = startFakeResponses();
  const gateway = await startGateway({ yaml: YAML(chat.url, google.url, responses.url) });
  const models = { allow: ["*"], deny: ["*/never*"] };
  await gateway.agent("clerk", { tier_policy: { tiers: [1, 2], models } });
  const clerk = await gateway.token({ agent: "clerk" });
  return {
    ...{ chat, google, responses, gateway },
    client: new Anthropic({ apiKey: clerk, baseURL: gateway.url, maxRetries: 0 }),
    async post(body, path = "/v1/messages") {
      const response = await fetch(gateway.url + path, {
        method: "POST",
        headers: { "x-api-key": clerk, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return { status: response.status, headers: response.headers, text: await response.text() };
    },
    async lastEntries(action = "model.call") {
      const { body } = await gateway.call("GET", `/v1/ledger?action=${action}&limit=200&order=desc`);
      const rows: LedgerRow[] = body.data;
      return rows.filter(({ request_id }) => request_id === rows[0]?.request_id).reverse();
    },
    async stop() {
      await gateway.stop();
      await Promise.all([chat.close(), google.close(), responses.close()]);
    },
  };
}

export interface FakeResponses {
  readonly url: string;
  /** The bodies that were received. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly requests: readonly any[];
  /** Answers with these items of output from now on, whole or as a stream of events. */
  script(output: readonly object[]): void;
  close(): Promise<void>;
}

/** A scripted upstream that speaks OpenAI's Responses. */
function startFakeResponses(): FakeResponses {
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  const requests: any[] = [];
  let output: readonly object[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const index = requests.push(await request.json()) - 1;
      const body = requests[index];
      const head = { id: "resp_1", object: "response", created_at: 1, model: body.model };
      const usage = { input_tokens: 7, output_tokens: 3 };
      const response = { ...head, status: "completed", output, usage };
      if (!body.stream) return Response.json(response);
      const events = [
        { type: "response.created", response: { ...head, output: [] } },
        ...output.flatMap((item, index) => eventsOf(item, index)),
        { type: "response.completed", response },
      ];
      const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
      return new Response(text, { headers: { "content-type": "text/event-stream" } });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    requests,
    script(items) {
      output = items;
    },
    close: () => server.stop(true),
  };
}

/** The events of an item of output. */
function eventsOf(item: object, output_index: number): { readonly type: string }[] {
  const { type, id: item_id } = item as { type: string; id: string };
  const at = { item_id, output_index };
  const texts = (name: string): string[] =>
    (Reflect.get(item, name) ?? []).map(({ text }: { text: string }) => text);
  const inner =
    type === "message"
      ? texts("content").map((delta) => ({ type: "response.output_text.delta", ...at, delta }))
      : type === "reasoning"
        ? texts("summary").flatMap((delta, summary_index) => [
            { type: "response.reasoning_summary_part.added", ...at, summary_index },
            { type: "response.reasoning_summary_text.delta", ...at, summary_index, delta },
            { type: "response.reasoning_summary_part.done", ...at, summary_index },
          ])
        : [
            {
              type: "response.function_call_arguments.delta",
              ...{ ...at, delta: Reflect.get(item, "arguments") },
            },
          ];
  const begun = type === "function_call" ? { ...item, arguments: "" } : { ...item, encrypted_content: null };
  return [
    { type: "response.output_item.added", output_index, item: begun } as { type: string },
    ...inner,
    { type: "response.output_item.done", output_index, item } as { type: string },
  ];
}

export const USER = [{ role: "user" as const, content: "Good morning" }];
export const WEATHER = {
  name: "weather",
  description: "The weather of a town",
  input_schema: {
    type: "object" as const,
    properties: { town: { type: "string" } },
    required: ["town"],
  },
};

/** An event of Chat Completions. */
export function chatEvent(delta: object, finish_reason: string | null = null): Uint8Array {
  const choices = [{ index: 0, delta, finish_reason }];
  return Buffer.from(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices })}\n\n`);
}

/** Providers that send whatever a test sets, and helpers for the events in their streams. */
import { afterAll, beforeAll } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { storedText } from "./messages-support.ts";
import type { LedgerRow } from "./support.ts";

export const HIDDEN = "what only the client sees";
/** A stream with this part stays open until the client disconnects. */
export const WAIT = ": wait\n\n";

export interface Providers {
  /** The parts of the next answers. */
  parts: readonly string[];
  readonly gateway: TestGateway;
  post(path: string, body: object): Promise<string>;
  lastEntry(): Promise<LedgerRow>;
  /** The evidence of the last answer, once its outcome is on disk. */
  evidence(): Promise<string>;
}

/** A gateway with the providers `messages`, `chat` and `responses`, for all tests of a file. */
export function useProviders(): Providers {
  let gateway: TestGateway;
  const providers: Providers = {
    parts: [],
    get gateway() {
      return gateway;
    },
    async post(path, body) {
      const response = await fetch(gateway.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return await response.text();
    },
    async lastEntry() {
      const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=1&order=desc");
      return body.data[0];
    },
    async evidence() {
      await until(async () => (await providers.lastEntry()).phase === "outcome");
      return storedText(gateway.dataDir, await providers.lastEntry(), "output") ?? "";
    },
  };
  const upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(
        new ReadableStream({
          start(controller) {
            for (const part of providers.parts) controller.enqueue(Buffer.from(part));
            if (!providers.parts.includes(WAIT)) controller.close();
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      ),
  });
  beforeAll(async () => {
    const url = `http://127.0.0.1:${upstream.port}`;
    gateway = await startGateway({
      yaml: `
providers:
  messages: { kind: anthropic, base_url: "${url}", api_key: sk-upstream }
  chat: { kind: openai-compatible, base_url: "${url}" }
  responses: { kind: openai, base_url: "${url}", api_key: sk-upstream }
drain_seconds: 1
`,
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await upstream.stop(true);
  });
  return providers;
}

export const event = (name: string | null, data: object | string) =>
  `${name === null ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
export const typed = (data: { readonly type: string; readonly [name: string]: unknown }) =>
  event(data.type, data);

export const start = (content: object[] = []) =>
  typed({
    type: "message_start",
    message: {
      ...{ id: "msg_1", type: "message", role: "assistant", model: "m", content, stop_reason: null },
      usage: { input_tokens: 10, output_tokens: 1 },
    },
  });
export const block = (more: object = {}, index = 0) =>
  typed({ type: "content_block_start", index, content_block: { type: "text", text: "", ...more } });
export const text = (delta: string, index = 0) =>
  typed({ type: "content_block_delta", index, delta: { type: "text_delta", text: delta } });
export const finish =
  typed({ type: "content_block_stop", index: 0 }) +
  typed({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 10 } });
export const stop = typed({ type: "message_stop" });

export const chunk = (delta: object, more: object = {}) =>
  event(null, {
    id: "c",
    object: "chat.completion.chunk",
    model: "m",
    choices: [{ index: 0, delta, ...more }],
  });
export const ended = chunk({}, { finish_reason: "stop" });
export const done = "data: [DONE]\n\n";

export const answered = (text: string) => ({
  ...{ id: "resp_1", object: "response", created_at: 1, model: "m" },
  output: [
    {
      type: "message",
      id: "m",
      role: "assistant",
      content: [{ type: "output_text", text, annotations: [] }],
    },
  ],
});
export const created = typed({ type: "response.created", response: { ...answered(""), output: [] } });
export const completed = typed({
  type: "response.completed",
  response: { ...answered("Fine."), status: "completed" },
});
export const at = { item_id: "m", output_index: 0, content_index: 0 };
export const added = typed({
  ...{ type: "response.output_item.added", output_index: 0 },
  item: { type: "message", id: "m", role: "assistant", content: [] },
});
export const part = (delta: string) => typed({ type: "response.output_text.delta", ...at, delta });

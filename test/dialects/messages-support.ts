import { Database } from "bun:sqlite";
import Anthropic from "@anthropic-ai/sdk";
import { databasePath } from "../../src/store/directory.ts";
import { type FakeMessages, startFakeMessages } from "../support/fake-messages.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import type { LedgerRow } from "./support.ts";

export interface MessagesStage {
  readonly upstream: FakeMessages;
  readonly gateway: TestGateway;
  /** A token of the agent `clerk`, which may not use `claude/never*`, `up/never*` or tier 2. */
  readonly clerk: string;
  /** Anthropic's own client. */
  client(apiKey?: string): Anthropic;
  /** A request with the given bytes. */
  post(body: string | Uint8Array, options?: PostOptions): Promise<{ response: Response; bytes: Buffer }>;
  /** The entries of a request, oldest first. */
  entriesOf(response: Pick<Response, "headers">, action?: string): Promise<LedgerRow[]>;
  /** A text that an entry contains only as a hash. */
  text(entry: LedgerRow | undefined, kind: "input" | "output"): string | undefined;
  stop(): Promise<void>;
}

export interface PostOptions {
  readonly path?: string;
  /** Null: no `Authorization`. */
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

const YAML = (url: string) => `
providers:
  claude: { kind: anthropic, base_url: ${url}, api_key: sk-upstream }
  up: { kind: openai-compatible, base_url: ${url}, api_key: sk-upstream }
models:
  claude/priced: { input: 1, output: 2 }
tiers:
  1: { name: small, models: [claude/first, claude/second] }
  2: { name: large, models: [claude/large] }
  3: { name: foreign, models: [up/gpt] }
aliases:
  "claude-*": claude/claude-*
drain_seconds: 1
`;

/** A gateway in front of a scripted upstream that speaks Messages. */
export async function openMessagesStage(): Promise<MessagesStage> {
  const upstream = startFakeMessages("sk-upstream");
  const gateway = await startGateway({ yaml: YAML(upstream.url) });
  const allowed = { tiers: [1, 3], models: { allow: ["*"], deny: ["claude/never*", "up/never*"] } };
  await gateway.agent("clerk", { tier_policy: allowed });
  const clerk = await gateway.token({ agent: "clerk" });
  return {
    ...{ upstream, gateway, clerk },
    client: (apiKey = clerk) => new Anthropic({ apiKey, baseURL: gateway.url, maxRetries: 0 }),
    async post(body, { path = "/v1/messages", token = clerk, headers = {}, signal } = {}) {
      const own = token === null ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(gateway.url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...own, ...headers },
        body,
        ...(signal ? { signal } : {}),
      });
      return { response, bytes: Buffer.from(await response.arrayBuffer()) };
    },
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

/** A text that an entry contains only as a hash, of the workspace `default`. */
export function storedText(
  dataDir: string,
  entry: LedgerRow | undefined,
  kind: "input" | "output",
): string | undefined {
  const file = new Database(databasePath(dataDir), { readonly: true });
  try {
    const find = "SELECT body FROM payloads WHERE workspace_id = 1 AND seq = ? AND kind = ?";
    return file.query<{ body: string }, [number, string]>(find).get(entry?.seq ?? 0, kind)?.body;
  } finally {
    file.close();
  }
}

export const USER = [{ role: "user" as const, content: "Good morning" }];

/** A whole message. */
export function message(content: readonly object[], usage: object, more: object = {}): object {
  return {
    ...{ id: "msg_1", type: "message", role: "assistant", model: "claude-upstream", content },
    ...{ stop_reason: "end_turn", stop_sequence: null, usage, ...more },
  };
}

/** The events of a stream up to its content. */
export function opening(usage: object): object {
  return { type: "message_start", message: message([], usage, { stop_reason: null }) };
}

/** The events of one block of content. */
export function block(index: number, start: object, deltas: readonly object[]): object[] {
  return [
    { type: "content_block_start", index, content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

/** The last two events of a stream. */
export function closing(usage: object, stopReason = "end_turn"): object[] {
  return [
    { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
}

/** A streamed text. */
export function textEvents(parts: readonly string[], input: number, output: number): object[] {
  const deltas = parts.map((text) => ({ type: "text_delta", text }));
  return [
    opening({ input_tokens: input, output_tokens: 1 }),
    { type: "ping" },
    ...block(0, { type: "text", text: "" }, deltas),
    ...closing({ output_tokens: output }),
  ];
}

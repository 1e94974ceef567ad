import OpenAI from "openai";
import { type FakeGoogle, startFakeGoogle } from "../../support/fake-google.ts";
import { type FakeMessages, startFakeMessages } from "../../support/fake-messages.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import type { LedgerRow } from "../support.ts";

export interface TranslationStage {
  readonly google: FakeGoogle;
  readonly anthropic: FakeMessages;
  readonly gateway: TestGateway;
  /** A token of the agent `clerk`, which may not use `gemini/never*` or `claude/never*`. */
  readonly clerk: string;
  /** OpenAI's own client, as the agent `clerk`. */
  readonly client: OpenAI;
  post(path: string, body: object): Promise<{ status: number; headers: Headers; text: string }>;
  /** The entries of the last request with this action. */
  lastEntries(action?: string): Promise<LedgerRow[]>;
  stop(): Promise<void>;
}

const YAML = (google: string, anthropic: string) => `
providers:
  gemini: { kind: google, base_url: ${google}, api_key: sk-google-upstream }
  slow: { kind: google, base_url: ${google}, api_key: sk-google-upstream, timeout_ms: 1000 }
  claude: { kind: anthropic, base_url: ${anthropic}, api_key: sk-upstream }
models:
  gemini/priced: { input: 1, output: 2 }
tiers:
  1: { name: small, models: [builtin/extractive] }
  2: { name: mixed, models: [gemini/first, claude/second] }
drain_seconds: 1
`;

/** A gateway in front of scripted upstreams that do not speak OpenAI's dialects. */
export async function openTranslationStage(): Promise<TranslationStage> {
  const google = startFakeGoogle("sk-google-upstream");
  const anthropic = startFakeMessages("sk-upstream");
  const gateway = await startGateway({ yaml: YAML(google.url, anthropic.url) });
  const models = { allow: ["*"], deny: ["gemini/never*", "claude/never*"] };
  await gateway.agent("clerk", { tier_policy: { tiers: [1, 2], models } });
  const clerk = await gateway.token({ agent: "clerk" });
  return {
    ...{ google, anthropic, gateway, clerk },
    client: new OpenAI({ apiKey: clerk, baseURL: `${gateway.url}/v1`, maxRetries: 0 }),
    async post(path, body) {
      const response = await fetch(gateway.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${clerk}`, "content-type": "application/json" },
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
      await google.close();
      await anthropic.close();
    },
  };
}

export const USER = [{ role: "user" as const, content: "Good morning" }];

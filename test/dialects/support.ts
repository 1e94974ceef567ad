import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

export interface DialectStage {
  readonly upstream: FakeModel;
  readonly gateway: TestGateway;
  /** A token of the agent `clerk`. */
  readonly clerk: string;
  /** Entries of the ledger with an action, oldest first. */
  entries(action?: string): Promise<LedgerRow[]>;
  stop(): Promise<void>;
}

export interface LedgerRow {
  readonly seq: number;
  readonly phase: string;
  readonly ref: number | null;
  readonly outcome: string;
  readonly code: string | null;
  readonly agent: string | null;
  readonly model: string | null;
  readonly tier: number | null;
  readonly credits: number | null;
  readonly request_id: string;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

const YAML = (url: string, providers: string, prices: string) => `
providers:
  up: { kind: openai-compatible, base_url: ${url}, api_key: sk-upstream }
  other: { kind: anthropic, base_url: ${url}, api_key: sk-upstream }
${providers}
models:
  up/priced: { input: 1, output: 2 }
${prices}tiers:
  1: { name: small, models: [up/first, up/second] }
  2: { name: large, models: [up/large, up/priced] }
  3: { name: foreign, models: [other/claude] }
aliases:
  gpt-5: tier:1
  "gpt-*": up/gpt-*
  "best": large
drain_seconds: 1
`;

/** A gateway in front of a scripted upstream. `providers`, `prices` and `settings`: lines of further configuration. */
export async function openDialectStage({
  providers = "",
  prices = "",
  settings = "",
}: {
  readonly providers?: string;
  readonly prices?: string;
  readonly settings?: string;
} = {}): Promise<DialectStage> {
  const upstream = startFakeModel({ apiKey: "sk-upstream" });
  const gateway = await startGateway({ yaml: YAML(upstream.url, providers, prices) + settings });
  await gateway.agent("clerk", {
    tier_policy: { tiers: [1], models: { allow: ["*"], deny: ["up/never*"] } },
  });
  const clerk = await gateway.token({ agent: "clerk" });
  return {
    ...{ upstream, gateway, clerk },
    async entries(action = "model.call") {
      const { body } = await gateway.call("GET", `/v1/ledger?action=${action}&limit=200`);
      return body.data;
    },
    async stop() {
      await gateway.stop();
      await upstream.close();
    },
  };
}

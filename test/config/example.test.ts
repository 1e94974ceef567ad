import { expect, test } from "bun:test";
import { load } from "./support.ts";

test("the contract's example is read in full", () => {
  const yaml = `
listen: 127.0.0.1:8420
public_url: https://gate.example.org        # what clients see, behind a proxy
providers:
  local: { kind: openai-compatible, base_url: "http://127.0.0.1:11434/v1", api_key: "\${LOCAL_KEY}", timeout_ms: 60000 }
  openai: { kind: openai, api_key: "\${OPENAI_API_KEY}" }          # also: anthropic, google
models:                                     # prices in credits per 1,000 tokens; what is not listed costs 0
  local/llama3.2: { input: 0.1, output: 0.4 }
tiers:
  1: { name: economy, models: [local/llama3.2, builtin/extractive] }
  2: { name: standard, models: [openai/gpt-5-mini, local/llama3.2] }
embeddings: { model: local/nomic-embed-text }   # default: builtin/lexical
limits: { requests_per_minute: 600, concurrent_tasks: 60, enforcement: soft, running_tasks_per_node: 256 }
notify: { webhook: "https://ops.example.org/hook" }
ledger: { checkpoint_every: 256, checkpoint_seconds: 10, checkpoint_file: /srv/worm/checkpoints, payload_days: 180 }
`;
  const { config, defaultTiers } = load({ yaml, env: { LOCAL_KEY: "l-key", OPENAI_API_KEY: "o-key" } });
  expect(config).toEqual({
    dataDir: "/srv/gatehouse-data",
    upgradeBackup: "/srv/gatehouse-data",
    listen: { host: "127.0.0.1", port: 8420 },
    publicUrl: "https://gate.example.org",
    masterKey: undefined,
    logLevel: "info",
    providers: new Map([
      [
        "local",
        {
          kind: "openai-compatible",
          baseUrl: "http://127.0.0.1:11434/v1",
          apiKey: "l-key",
          timeoutMs: 60_000,
        },
      ],
      ["openai", { kind: "openai", apiKey: "o-key", timeoutMs: 60_000 }],
    ]),
    aliases: new Map(),
    priceList: { unknown: "free" },
    prices: new Map([["local/llama3.2", { input: 100_000, output: 400_000 }]]),
    toolPrices: [],
    tiers: new Map([
      [1, { tier: 1, name: "economy", models: ["local/llama3.2", "builtin/extractive"] }],
      [2, { tier: 2, name: "standard", models: ["openai/gpt-5-mini", "local/llama3.2"] }],
    ]),
    embeddings: { model: "local/nomic-embed-text" },
    connectors: { timeoutMs: 60_000, stdio: "operator", allowAddresses: [] },
    limits: {
      requestsPerMinute: 600,
      concurrentTasks: 60,
      enforcement: "soft",
      runningTasksPerNode: 256,
      queuedTasks: 10_000,
    },
    notify: { webhook: "https://ops.example.org/hook" },
    approvals: { expireHours: 24 },
    console: { sessionHours: 12 },
    vault: { readers: 2, mostMs: 120_000, memoryBytes: 1_073_741_824 },
    drainSeconds: 10,
    ledger: {
      checkpointEvery: 256,
      checkpointSeconds: 10,
      checkpointFile: "/srv/worm/checkpoints",
      payloadDays: 180,
    },
  });
  expect(defaultTiers).toBe(false);
});

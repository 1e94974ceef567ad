import { describe, expect, test } from "bun:test";
import { publicUrl } from "../../src/config/config.ts";
import { SETTINGS } from "../../src/config/table.ts";
import { DEFAULT_FILE, load, originOf } from "./support.ts";

describe("with nothing given", () => {
  const { config, values, defaultTiers } = load({});

  test("every setting has its default", () => {
    expect(config).toEqual({
      dataDir: "/srv/gatehouse-data",
      upgradeBackup: "/srv/gatehouse-data",
      listen: { host: "127.0.0.1", port: 8420 },
      masterKey: undefined,
      logLevel: "info",
      providers: new Map(),
      aliases: new Map(),
      priceList: { unknown: "free" },
      prices: new Map(),
      toolPrices: [],
      tiers: new Map([
        [1, { tier: 1, name: "economy", models: ["builtin/extractive"] }],
        [2, { tier: 2, name: "standard", models: ["builtin/extractive"] }],
      ]),
      embeddings: { model: "builtin/lexical" },
      connectors: { timeoutMs: 60_000, stdio: "operator", allowAddresses: [] },
      limits: {
        requestsPerMinute: 600,
        concurrentTasks: 60,
        enforcement: "soft",
        runningTasksPerNode: 256,
        queuedTasks: 10_000,
      },
      notify: {},
      approvals: { expireHours: 24 },
      console: { sessionHours: 12 },
      vault: { readers: 2, mostMs: 120_000, memoryBytes: 1_073_741_824 },
      drainSeconds: 10,
      ledger: { checkpointEvery: 256, checkpointSeconds: 10, payloadDays: 180 },
    });
    expect(defaultTiers).toBe(true);
  });

  test("every value is marked as a default", () => {
    expect(new Set(values.map(({ origin }) => origin))).toEqual(new Set(["default"]));
  });

  test.each(["", "\n", "# nothing\n", "---\n", "limits:\nproviders:\ntiers:\n", "tiers: {}\n", "\ufeff"])(
    "an empty file %j changes nothing",
    (yaml) => {
      expect(load({ yaml }).config).toEqual(config);
    },
  );
});

describe("precedence", () => {
  const yaml = "# a comment\nlisten: 127.0.0.1:3\n";
  const env = { GATEHOUSE_LISTEN: "127.0.0.1:2" };
  const cases = [
    ["a flag over all", { yaml, env, flags: { listen: "127.0.0.1:1" } }, 1, "flag (--listen)"],
    ["a variable over the file", { yaml, env }, 2, "environment (GATEHOUSE_LISTEN)"],
    ["the file over the default", { yaml }, 3, `file (${DEFAULT_FILE}:2)`],
    ["the default", {}, 8420, "default (built in)"],
    [
      "an empty variable counts as unset",
      { yaml, env: { GATEHOUSE_LISTEN: "" } },
      3,
      `file (${DEFAULT_FILE}:2)`,
    ],
    [
      "an undefined flag counts as unset",
      { env, flags: { listen: undefined } },
      2,
      "environment (GATEHOUSE_LISTEN)",
    ],
  ] as const;
  test.each(cases)("%s", (_, given, port, origin) => {
    const loaded = load(given);
    expect(loaded.config.listen.port).toBe(port);
    expect(originOf(loaded, "listen")).toBe(origin);
  });

  test("every setting with a variable can be set by it", () => {
    const samples: Record<string, string> = {
      GATEHOUSE_CONFIG: "/srv/other.yaml",
      GATEHOUSE_LISTEN: "[::1]:0",
      GATEHOUSE_PUBLIC_URL: "https://gate.example.org/",
      GATEHOUSE_ADMIN_TOKEN: `gth_${"a".repeat(49)}`,
      GATEHOUSE_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      GATEHOUSE_STORE: "postgres://user:password@pooler/gatehouse",
      GATEHOUSE_STORE_LISTEN: "postgres://user:password@host/gatehouse",
      GATEHOUSE_LOG_LEVEL: "debug",
      GATEHOUSE_CONNECTORS_STDIO: "none",
      GATEHOUSE_CONNECTORS_STDIO_USER: "mcp",
      GATEHOUSE_CONNECTORS_ALLOW_ADDRESSES: "169.254.169.254, fd00:ec2::/32",
      GATEHOUSE_EMBEDDINGS_MODEL: "builtin/lexical",
      GATEHOUSE_VAULT_READ_MEGABYTES: "256",
      GATEHOUSE_LIMITS_ENFORCEMENT: "enforced",
      GATEHOUSE_PRICES_UNKNOWN: "refuse",
      GATEHOUSE_NOTIFY_WEBHOOK: "https://user:password@ops.example.org/hook?key=1",
      GATEHOUSE_NOTIFY_SECRET: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
    };
    const names = SETTINGS.flatMap(({ env }) => env ?? []);
    const env = Object.fromEntries(names.map((name) => [name, samples[name] ?? "7"]));
    const { config, values } = load({ env, files: { "/srv/other.yaml": "" } });
    expect(config).toMatchObject({
      dataDir: "/srv/7",
      listen: { host: "::1", port: 0 },
      publicUrl: "https://gate.example.org",
      adminToken: samples.GATEHOUSE_ADMIN_TOKEN,
      masterKey: samples.GATEHOUSE_MASTER_KEY,
      store: { url: samples.GATEHOUSE_STORE, directUrl: samples.GATEHOUSE_STORE_LISTEN },
      logLevel: "debug",
      priceList: { microsPerUsd: 7_000_000, unknown: "refuse" },
      limits: {
        requestsPerMinute: 7,
        concurrentTasks: 7,
        enforcement: "enforced",
        runningTasksPerNode: 7,
        queuedTasks: 7,
      },
      vault: { readers: 7, mostMs: 7_000, memoryBytes: 268_435_456 },
      connectors: {
        timeoutMs: 7,
        stdio: "none",
        stdioUser: "mcp",
        allowAddresses: ["169.254.169.254", "fd00:ec2::/32"],
      },
      notify: { webhook: samples.GATEHOUSE_NOTIFY_WEBHOOK, secret: samples.GATEHOUSE_NOTIFY_SECRET },
      ledger: { checkpointEvery: 7, checkpointSeconds: 7, checkpointFile: "/srv/7", payloadDays: 7 },
    });
    const fromVariables = values.filter(({ origin }) => origin === "environment").map(({ detail }) => detail);
    expect(fromVariables).toEqual(names);
  });
});

describe("named things", () => {
  test("tiers are in ascending order and have names", () => {
    const yaml =
      "tiers:\n  10: { models: [builtin/extractive] }\n  2: { models: [builtin/extractive], name: two }\n";
    expect([...load({ yaml }).config.tiers.values()]).toEqual([
      { tier: 2, name: "two", models: ["builtin/extractive"] },
      { tier: 10, name: "tier 10", models: ["builtin/extractive"] },
    ]);
  });

  test("a provider's headers, URL and empty key", () => {
    const yaml = `providers:
  a: { kind: openai, base_url: "https://u:p@a.example/v1//", api_key: "", headers: { X-Team: "7", constructor: c } }`;
    expect(load({ yaml }).config.providers.get("a")).toEqual({
      kind: "openai",
      baseUrl: "https://u:p@a.example/v1",
      timeoutMs: 60_000,
      headers: { "X-Team": "7", constructor: "c" },
    });
  });

  test("prices are exact to a millionth, and may name models of any maker", () => {
    const yaml = "models: { or/meta/llama-3:free@x: { input: 0.000001, output: 3 } }";
    const price = { input: 1, output: 3_000_000 };
    expect(load({ yaml }).config.prices).toEqual(new Map([["or/meta/llama-3:free@x", price]]));
  });

  test("anchors and aliases may be used", () => {
    const yaml = "tiers: { 1: &t { models: [builtin/extractive] }, 2: *t }";
    expect([...load({ yaml }).config.tiers.keys()]).toEqual([1, 2]);
  });
});

test("the public URL is derived from the bound address, unless it is set", () => {
  const url = (listen: string, env = {}) => publicUrl(load({ flags: { listen }, env }).config, 8421);
  expect(url("127.0.0.1:0")).toBe("http://127.0.0.1:8421");
  expect(url("0.0.0.0:8420")).toBe("http://127.0.0.1:8421");
  expect(url("[::]:8420")).toBe("http://[::1]:8421");
  expect(url("[fd00::1]:8420")).toBe("http://[fd00::1]:8421");
  expect(url("gate:8420")).toBe("http://gate:8421");
  expect(url("gate:8420", { GATEHOUSE_PUBLIC_URL: "https://x.example/gate/" })).toBe(
    "https://x.example/gate",
  );
});

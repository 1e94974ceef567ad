import { describe, expect, test } from "bun:test";
import { checkConfig } from "../../src/config/check.ts";
import { configReference } from "../../src/config/reference.ts";
import { configTable, showConfig } from "../../src/config/show.ts";
import { OTHER_VARIABLES, SETTINGS } from "../../src/config/table.ts";
import { DEFAULT_FILE, load, sources } from "./support.ts";

const yaml = `notify: { webhook: "https://ops.example.org/hook/T0KEN" }
providers:
  local:
    kind: openai-compatible
    base_url: "https://me:pa55@local.example/v1"
    api_key: k3y
    headers: { Authorization: Basic s3cret }
models: { local/m: { input: 0.1, output: 0.2 } }
tiers: { 1: { models: [local/m, builtin/extractive] } }
`;

describe("config show", () => {
  const { values } = load({ yaml, env: { GATEHOUSE_ADMIN_TOKEN: `gth_${"x".repeat(49)}` } });
  const rows = new Map(showConfig(values).map((row) => [row.key, row]));

  test.each([
    ["admin_token", "[redacted]", "environment", "GATEHOUSE_ADMIN_TOKEN"],
    ["notify.webhook", "[redacted]", "file", `${DEFAULT_FILE}:1`],
    ["providers.local.kind", "openai-compatible", "file", `${DEFAULT_FILE}:4`],
    ["providers.local.base_url", "https://[redacted]@local.example/v1", "file", `${DEFAULT_FILE}:5`],
    ["providers.local.api_key", "[redacted]", "file", `${DEFAULT_FILE}:6`],
    ["providers.local.headers.Authorization", "[redacted]", "file", `${DEFAULT_FILE}:7`],
    ["providers.local.timeout_ms", 60_000, "default", "built in"],
    ["models.local/m.input", 0.1, "file", `${DEFAULT_FILE}:8`],
    ["tiers.1.models", ["local/m", "builtin/extractive"], "file", `${DEFAULT_FILE}:9`],
    ["config", DEFAULT_FILE, "default", "in the data directory"],
    ["public_url", "http://127.0.0.1:8420", "default", "from listen"],
    ["ledger.checkpoint_file", null, "default", "not set"],
  ] as const)("%s", (key, value, origin, detail) => {
    expect(rows.get(key)).toEqual({ key, value, origin, detail });
  });

  test("as a table", () => {
    const lines = configTable(load({ yaml }).values).split("\n");
    const fields = lines.map((line) => line.split(/ {2,}/));
    expect(fields[0]).toEqual(["SETTING", "VALUE", "FROM"]);
    expect(fields).toContainEqual(["listen", "127.0.0.1:8420", "default (built in)"]);
    expect(fields).toContainEqual(["providers.local.api_key", "[redacted]", `file (${DEFAULT_FILE}:6)`]);
    expect(fields).toContainEqual(["ledger.checkpoint_file", "-", "default (not set)"]);
    const from = lines[0]?.indexOf("FROM") ?? 0;
    for (const line of lines.slice(1))
      expect(line.slice(from)).toMatch(/^(default|file|environment|flag) \(/);
  });

  test("an address without a fixed port has no URL yet", () => {
    const shown = showConfig(load({ flags: { listen: "127.0.0.1:0" } }).values);
    expect(shown.find(({ key }) => key === "public_url")?.value).toBeNull();
  });
});

describe("config check", () => {
  test("names the file that was checked", () => {
    expect(checkConfig(sources({ yaml }))).toEqual({
      ok: true,
      messages: [`${DEFAULT_FILE} is valid: 1 provider, 1 tier.`],
      problems: [],
    });
    expect(checkConfig(sources({})).messages).toEqual([
      "There is no configuration file. The defaults are valid: 0 providers, 2 tiers.",
    ]);
  });

  test("lists what is wrong", () => {
    expect(checkConfig(sources({ yaml: "zzz: 1", flags: { listen: "a:1" } }))).toEqual({
      ok: false,
      messages: [`zzz (${DEFAULT_FILE}:1): is not a known setting; the nearest is store`],
      problems: [
        { key: "zzz", where: `${DEFAULT_FILE}:1`, message: "is not a known setting; the nearest is store" },
      ],
    });
  });
});

describe("the reference", () => {
  const page = configReference();

  test("has a row for each setting and each other variable", () => {
    for (const { key, env, flag, help } of SETTINGS) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${key}\` |`));
      for (const part of [env, flag, help]) if (part !== undefined) expect(row).toContain(part);
    }
    for (const [name, help] of OTHER_VARIABLES) expect(page).toContain(`| \`${name}\` | ${help} |`);
  });

  test("has as many cells in each row as in its heading", () => {
    const cells = page
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.split(/(?<!\\)\|/).length);
    expect(new Set(cells)).toEqual(new Set([6, 4]));
  });
});

test("the table's defaults are values that the settings accept", () => {
  for (const row of SETTINGS)
    if (row.default !== undefined) expect([row.key, row.is(row.default)]).toEqual([row.key, true]);
  expect(new Set(SETTINGS.map(({ key }) => key)).size).toBe(SETTINGS.length);
});

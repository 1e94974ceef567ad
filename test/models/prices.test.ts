/** The shipped price list, and the prices that take precedence over it. */
import { describe, expect, test } from "bun:test";
import { calcPrice, findProvider, type ModelInfo } from "@pydantic/genai-prices";
import { LIST_PATH, listText, packagedProviders, packagedSource } from "../../scripts/lib/prices.ts";
import type { Price } from "../../src/base/call-cost.ts";
import { toMicros } from "../../src/base/credits.ts";
import type { ProviderKind } from "../../src/config/config.ts";
import { openPriceBook, type PriceConfig } from "../../src/models/prices/price-book.ts";
import { PriceList } from "../../src/models/prices/price-list.ts";

const SHIPPED = await Bun.file(LIST_PATH).text();
const shipped: { dated: string; source: string; license: string } = JSON.parse(SHIPPED);
const list = new PriceList(JSON.parse(SHIPPED));
/** One credit is a cent. */
const CENTS = toMicros(100) ?? 0;

test("the file is the output of scripts/prices for the installed package", async () => {
  expect(shipped.dated).toMatch(/^\d{4}-\d{2}-\d{2}$/);
  expect(await listText(packagedProviders(), shipped.dated, await packagedSource())).toBe(SHIPPED);
});

test("it names its source and includes the required licence", async () => {
  expect(shipped.source).toBe("@pydantic/genai-prices 0.1.8 (MIT)");
  expect(shipped.license).toContain("Copyright (c) Pydantic Services Inc.");
});

const SOURCES: readonly [kind: ProviderKind, source: string][] = [
  ["openai", "openai"],
  ["anthropic", "anthropic"],
  ["google", "google"],
  ["vertex", "google"],
  ["azure", "azure"],
  ["bedrock", "aws"],
];

/** Names that the rules of a model in the source mention, so that each rule is tried. */
function namesIn(rule: unknown): string[] {
  if (typeof rule === "string") return [rule, `${rule}-20990101`, `x.${rule}`, rule.toUpperCase()];
  return typeof rule === "object" && rule !== null ? Object.values(rule).flatMap(namesIn) : [];
}

describe.each(SOURCES)("%s", (kind, providerId) => {
  const models: readonly ModelInfo[] = findProvider({ providerId })?.models ?? [];
  // The length tiers begin far beyond this, and nothing is cached, so these are the costs that the source's own code
  // calculates from its base prices.
  const usage = { input_tokens: 1_000, output_tokens: 1_000 };

  test("no model costs less than its source's own code calculates", () => {
    let compared = 0;
    for (const name of models.flatMap(({ id, match }) => [id, ...namesIn(match)])) {
      const expected = calcPrice(usage, name, {
        providerId,
        timestamp: new Date(`${shipped.dated}T00:00:00Z`),
      });
      const price = list.price(kind, name, CENTS);
      if (!expected || !price) continue;
      compared++;
      expect({ name, isEnough: price.input >= Math.floor(expected.input_price * CENTS - 1) }).toEqual({
        name,
        isEnough: true,
      });
      expect({ name, isEnough: price.output >= Math.floor(expected.output_price * CENTS - 1) }).toEqual({
        name,
        isEnough: true,
      });
    }
    expect(compared).toBeGreaterThan(15);
  });

  test("an unknown name is not listed", () => {
    expect(list.price(kind, "no-such-model-1", CENTS)).toBeUndefined();
  });
});

test.each<[ProviderKind, name: string, price: Price]>([
  ["openai", "gpt-5-mini", { input: 25_000, output: 200_000, cachedInput: 2_500 }],
  ["openai", "gpt-5-mini-2025-08-07", { input: 25_000, output: 200_000, cachedInput: 2_500 }],
  // By its deployment's name.
  ["azure", "gpt-5-mini", { input: 25_000, output: 200_000, cachedInput: 2_500 }],
  // Up to an hour in the cache.
  [
    "anthropic",
    "claude-haiku-4-5",
    { input: 100_000, output: 500_000, cachedInput: 10_000, cacheWrites: 200_000 },
  ],
  // Beyond 200,000 tokens.
  ["google", "gemini-2.5-pro", { input: 250_000, output: 1_500_000, cachedInput: 25_000 }],
  ["vertex", "gemini-2.5-pro", { input: 250_000, output: 1_500_000, cachedInput: 25_000 }],
])("a model of %s, %s, costs %j micro-credits", (kind, name, price) => {
  expect(list.price(kind, name, CENTS)).toEqual(price);
});

test("prices are rounded up to a micro-credit", () => {
  const price = (usd: string, microsPerUsd: number) =>
    new PriceList({
      ...{ dated: "2026-01-01", source: "a test" },
      kinds: {
        openai: { also: [], models: [{ model: "m", match: { equals: "m" }, input: usd, output: "0" }] },
      },
    }).price("openai", "m", microsPerUsd)?.input;
  expect(price("0.25", 1_000_000)).toBe(250);
  expect(price("0.0001", 1_000_000)).toBe(1);
  expect(price("0.0011", 1_000_000)).toBe(2);
  expect(price("3", 333_333)).toBe(1_000);
  expect(price("0", 1)).toBe(0);
});

const config = (more: Partial<PriceConfig>): PriceConfig => ({
  providers: new Map([
    ["openai", { kind: "openai", timeoutMs: 1 }],
    ["local", { kind: "openai-compatible", timeoutMs: 1 }],
  ]),
  prices: new Map([["openai/gpt-5-mini", { input: 1, output: 2 }]]),
  priceList: { microsPerUsd: CENTS, unknown: "refuse" },
  ...more,
});

test("configured prices take precedence over the list, and the built-in model is free", async () => {
  const book = await openPriceBook(config({}));
  expect(book.dated).toBe(shipped.dated);
  expect(book.of("openai/gpt-5-mini")).toEqual({ price: { input: 1, output: 2 }, origin: "config" });
  expect(book.of("openai/gpt-5-nano")).toMatchObject({ price: { input: 5_000 }, origin: "list" });
  expect(book.of("local/gpt-5-nano")).toEqual({ price: { input: 0, output: 0 }, origin: "none" });
  expect(book.of("builtin/extractive")).toEqual({ price: { input: 0, output: 0 }, origin: "builtin" });
  const names = [
    "openai/gpt-5-mini",
    "openai/gpt-5-nano",
    "local/gpt-5-nano",
    "openai/x",
    "builtin/extractive",
  ];
  expect(names.filter((name) => book.refuses(name))).toEqual(["local/gpt-5-nano", "openai/x"]);
});

test("without a rate no listed price is used, and by default nothing is refused", async () => {
  const book = await openPriceBook(config({ priceList: { unknown: "free" } }));
  expect(book.dated).toBeNull();
  expect(book.of("openai/gpt-5-nano")).toEqual({ price: { input: 0, output: 0 }, origin: "none" });
  expect(book.refuses("openai/gpt-5-nano")).toBe(false);
});

test("at Amazon, a configured price also applies to the model's other names, and the highest one counts", async () => {
  const prices = new Map([
    ["aws/anthropic.claude-x", { input: 3, output: 4 }],
    ["aws/eu.anthropic.claude-x", { input: 5, output: 6 }],
    ["local/meta.llama", { input: 7, output: 8 }],
  ]);
  const providers: PriceConfig["providers"] = new Map([
    ["aws", { kind: "bedrock", timeoutMs: 1 }],
    ["local", { kind: "openai-compatible", timeoutMs: 1 }],
  ]);
  const book = await openPriceBook(config({ providers, prices, priceList: { unknown: "free" } }));
  expect(book.of("aws/anthropic.claude-x").price).toEqual({ input: 3, output: 4 });
  expect(book.of("aws/us.anthropic.claude-x")).toEqual({ price: { input: 5, output: 6 }, origin: "config" });
  expect(book.of("aws/us.anthropic.claude-y").origin).toBe("none");
  expect(book.of("local/us.meta.llama").origin).toBe("none");
});

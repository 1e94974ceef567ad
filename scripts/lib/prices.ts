/**
 * Makes the shipped price list from the data of @pydantic/genai-prices (MIT), a dev dependency pinned to an exact
 * version. To refresh it, update the package, run `scripts/prices --dated <day of its release>` and review the
 * difference.
 */
import { join } from "node:path";
import { findProvider } from "@pydantic/genai-prices";
import { Type } from "typebox";
import { validator } from "../../src/base/schema.ts";

const ROOT = join(import.meta.dir, "../..");
const PACKAGE = join(ROOT, "node_modules/@pydantic/genai-prices");
export const LIST_PATH = join(ROOT, "src/models/prices/list.json");

/**
 * For each kind of provider, its name in the source, and the providers whose models it also offers, under the same
 * names.
 */
const KINDS: Readonly<Record<string, { readonly source: string; readonly also?: readonly string[] }>> = {
  openai: { source: "openai" },
  azure: { source: "azure", also: ["openai", "anthropic"] },
  anthropic: { source: "anthropic" },
  google: { source: "google" },
  bedrock: { source: "aws" },
  vertex: { source: "google" },
};

/** A price that depends on the length of the request. */
const tiered = Type.Object({
  base: Type.Number(),
  tiers: Type.Array(Type.Object({ price: Type.Number() })),
});
const prices = Type.Record(Type.String(), Type.Union([Type.Number(), tiered]));
const startDate = Type.Object({ type: Type.Literal("start_date"), start_date: Type.String() });
const dataset = validator(
  Type.Array(
    Type.Object({
      id: Type.String(),
      models: Type.Array(
        Type.Object({
          id: Type.String(),
          match: Type.Record(Type.String(), Type.Unknown()),
          prices: Type.Union([
            Type.Array(Type.Object({ constraint: Type.Optional(startDate), prices })),
            prices,
          ]),
        }),
      ),
    }),
  ),
);
type Dataset = ReturnType<typeof dataset.parse>;
type SourceModel = Dataset[number]["models"][number];
type SourcePrices = Readonly<Record<string, number | { base: number; tiers: { price: number }[] }>>;

/** The providers that we use, as the installed package has them. */
export function packagedProviders(): unknown {
  const sources = new Set(Object.values(KINDS).map(({ source }) => source));
  const found = [...sources].map((providerId) => findProvider({ providerId }));
  // Converted through JSON, because the package's objects have its own classes.
  return JSON.parse(JSON.stringify(found));
}

/** The name, version and licence of the installed package. */
export async function packagedSource(): Promise<string> {
  const { version } = (await Bun.file(join(PACKAGE, "package.json")).json()) as { version: string };
  return `@pydantic/genai-prices ${version} (MIT)`;
}

/**
 * The text of the price list: one model per line.
 * @param providers data in the format of the source
 * @param dated the day of the source, `YYYY-MM-DD`
 */
export async function listText(providers: unknown, dated: string, source: string): Promise<string> {
  const all = dataset.parse(providers);
  const license = await Bun.file(join(PACKAGE, "LICENSE")).text();
  const head = { dated, source, unit: "USD per million tokens", license };
  const kinds = Object.entries(KINDS).map(([kind, { source: id, also = [] }]) => {
    const twin = Object.keys(KINDS).find((each) => KINDS[each]?.source === id);
    // A provider that is already listed under another kind.
    if (twin !== undefined && twin !== kind) return `"${kind}":{"models":[],"also":["${twin}"]}`;
    const models = all.find((provider) => provider.id === id)?.models;
    if (!models) throw new Error(`the source has no provider ${id}`);
    const rows = models.map((model) => JSON.stringify(rowOf(model, dated)));
    return `"${kind}":{"also":${JSON.stringify(also)},"models":[\n${rows.join(",\n")}\n]}`;
  });
  const fields = Object.entries(head).map(([name, value]) => `"${name}":${JSON.stringify(value)}`);
  return `{${fields.join(",\n")},\n"kinds":{\n${kinds.join(",\n")}}}\n`;
}

/** Rows keep the order of the source, because the first that matches counts. */
function rowOf({ id: model, match, prices }: SourceModel, dated: string) {
  const versions = Array.isArray(prices) ? currentOf(prices, dated) : [prices as SourcePrices];
  const highest = (...names: string[]) => highestOf(versions, names);
  const input = highest("input_mtok");
  const hasNoTokens = versions.every((each) => Object.keys(each).length > 0 && each.input_mtok === undefined);
  // Priced by the hour, for example: it has no price for tokens.
  if (hasNoTokens) return { model, match };
  return {
    ...{ model, match, input: input ?? "0", output: highest("output_mtok") ?? "0" },
    ...present("cached_input", highest("cache_read_mtok")),
    // Cache writes for an hour cost more than those for five minutes, and not all providers' answers distinguish the
    // two.
    ...present("cache_writes", highest("cache_write_mtok", "cache_write_1h_mtok")),
  };
}

/** The prices of a day and of all later ones, of which the highest is listed: the list is used until the next one. */
function currentOf(
  versions: readonly { constraint?: { start_date: string }; prices: object }[],
  dated: string,
): SourcePrices[] {
  const starts = versions.map(({ constraint }) => constraint?.start_date ?? "");
  const current =
    starts
      .filter((start) => start <= dated)
      .sort()
      .at(-1) ?? "";
  return versions.flatMap(({ prices }, at) =>
    (starts[at] ?? "") >= current ? [prices as SourcePrices] : [],
  );
}

/** The highest of a price's forms, as a decimal; undefined if there is none. */
function highestOf(versions: readonly SourcePrices[], names: readonly string[]): string | undefined {
  const found = versions.flatMap((version) =>
    names.flatMap((name) => {
      const price = version[name];
      if (price === undefined) return [];
      return typeof price === "number" ? [price] : [price.base, ...price.tiers.map((tier) => tier.price)];
    }),
  );
  return found.length === 0 ? undefined : decimal(Math.max(...found));
}

function decimal(price: number): string {
  const text = String(price);
  if (!/^\d+(?:\.\d+)?$/.test(text)) throw new Error(`${text} is not a decimal`);
  return text;
}

function present(name: string, price: string | undefined): Record<string, string> {
  return price === undefined ? {} : { [name]: price };
}

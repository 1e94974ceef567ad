import type { Clock } from "../base/clock.ts";
import type { Config, ProviderKind } from "../config/config.ts";
import { isEmbedded } from "./names.ts";
import { openPriceBook, type PriceOrigin } from "./prices/price-book.ts";
import { type ModelPriceView, priceView } from "./prices/price-view.ts";
import { baseUrlOf } from "./providers/base-url.ts";
import { whyUnreachable } from "./reach.ts";

/** A configured model, for the operator. Contains no secrets. */
export interface ModelOverview {
  /** `<provider>/<model>`; `<provider>/*` for a provider without configured models. */
  readonly name: string;
  readonly kind: ProviderKind | "builtin";
  readonly tiers: readonly number[];
  /** Null for a provider without configured models. */
  readonly price: ModelPriceView | null;
  readonly price_origin: PriceOrigin | null;
  /** The day of the price list, if the price comes from it. */
  readonly price_dated: string | null;
  /** Whether its calls are refused because it has no price. */
  readonly refused: boolean;
  /** Whether a connection to its provider can be opened. Null for the built-in model, which needs none. */
  readonly reachable: boolean | null;
  /** Why it is not reachable. */
  readonly unreachable_reason: string | null;
}

type OverviewConfig = Pick<Config, "providers" | "tiers" | "prices" | "priceList">;

/**
 * All configured models, with their prices and whether their providers can be reached. Opens one connection to each provider,
 * and never calls a model.
 */
export async function modelOverview(config: OverviewConfig, clock: Clock): Promise<ModelOverview[]> {
  const { providers, tiers } = config;
  const book = await openPriceBook(config);
  const reasons = new Map(
    await Promise.all(
      [...providers].map(async ([name, provider]): Promise<[string, string | null]> => {
        return [name, await whyUnreachable(baseUrlOf(provider), clock)];
      }),
    ),
  );
  return namesIn(config).flatMap((name) => {
    const provider = name.slice(0, name.indexOf("/"));
    const kind = isEmbedded(name) ? "builtin" : providers.get(provider)?.kind;
    // The price belongs to a provider that is not configured.
    if (kind === undefined) return [];
    const isModel = !name.endsWith("/*");
    const { price, origin } = book.of(name);
    const reason = reasons.get(provider) ?? null;
    return {
      ...{ name, kind },
      tiers: [...tiers.values()].filter(({ models }) => models.includes(name)).map(({ tier }) => tier),
      price: isModel ? priceView(price) : null,
      price_origin: isModel ? origin : null,
      price_dated: isModel && origin === "list" ? book.dated : null,
      refused: isModel && book.refuses(name),
      reachable: kind === "builtin" ? null : reason === null,
      unreachable_reason: reason,
    };
  });
}

/** The models in tiers and prices, and `<provider>/*` for each provider without any. Sorted. */
function namesIn({ providers, tiers, prices }: OverviewConfig): string[] {
  const models = new Set([...[...tiers.values()].flatMap((tier) => tier.models), ...prices.keys()]);
  const used = new Set([...models].map((name) => name.slice(0, name.indexOf("/"))));
  const unused = [...providers.keys()].filter((name) => !used.has(name));
  return [...models, ...unused.map((name) => `${name}/*`)].sort();
}

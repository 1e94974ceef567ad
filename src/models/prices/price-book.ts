import { isSameModel } from "../../base/amazon-names.ts";
import { FREE, type Price } from "../../base/call-cost.ts";
import type { Config } from "../../config/config.ts";
import { isEmbedded } from "../names.ts";
import { PriceList } from "./price-list.ts";

/** Where a price comes from: the configuration, the shipped list, or nowhere. The built-in model has none and needs none. */
export type PriceOrigin = "config" | "list" | "builtin" | "none";

export interface ModelPrice {
  /** Micro-credits per 1,000 tokens. Zero without a price. */
  readonly price: Price;
  readonly origin: PriceOrigin;
}

export type PriceConfig = Pick<Config, "providers" | "prices" | "priceList">;

/**
 * The maximum number of prices remembered, since clients can name any model of a provider. Beyond that, the price
 * that was looked up first is forgotten.
 */
const REMEMBERED = 1_000;

/** The prices of all models. Configured prices take precedence over the list. */
export class PriceBook {
  /** The day of the price list; null if it is not used. */
  readonly dated: string | null;
  readonly #config: PriceConfig;
  readonly #list: PriceList | null;
  readonly #known = new Map<string, ModelPrice>();

  /** @param list null if it is not used */
  constructor(config: PriceConfig, list: PriceList | null) {
    this.#config = config;
    this.#list = list;
    this.dated = list?.dated ?? null;
  }

  /** The price of a model, named `<provider>/<model>`. */
  of(model: string): ModelPrice {
    const known = this.#known.get(model);
    if (known) return known;
    const found = this.#find(model);
    this.#known.set(model, found);
    if (this.#known.size > REMEMBERED) {
      for (const first of this.#known.keys()) {
        this.#known.delete(first);
        break;
      }
    }
    return found;
  }

  /** Whether a model MUST NOT be called, because it has no price. */
  refuses(model: string): boolean {
    return this.#config.priceList.unknown === "refuse" && this.of(model).origin === "none";
  }

  #find(model: string): ModelPrice {
    const { prices, providers, priceList } = this.#config;
    if (isEmbedded(model)) return { price: prices.get(model) ?? FREE, origin: "builtin" };
    const configured = prices.get(model);
    if (configured) return { price: configured, origin: "config" };
    const slash = model.indexOf("/");
    const kind = providers.get(model.slice(0, slash))?.kind;
    const { microsPerUsd } = priceList;
    if (kind !== undefined && microsPerUsd !== undefined) {
      const listed = this.#list?.price(kind, model.slice(slash + 1), microsPerUsd);
      if (listed) return { price: listed, origin: "list" };
    }
    const other = kind === "bedrock" ? this.#ofOtherName(model) : undefined;
    return other ? { price: other, origin: "config" } : { price: FREE, origin: "none" };
  }

  /** The highest price of the same model under its other names, so that no budget is undercharged. */
  #ofOtherName(model: string): Price | undefined {
    const others = [...this.#config.prices].filter(([name]) => isSameModel(name, model));
    const sums = others.map(([, price]) => [price.input + price.output, price] as const);
    return sums.toSorted(([one], [other]) => other - one)[0]?.[1];
  }
}

/** The list is read only if it is used. */
export async function openPriceBook(config: PriceConfig): Promise<PriceBook> {
  if (config.priceList.microsPerUsd === undefined) return new PriceBook(config, null);
  const list: unknown = (await import("./list.json")).default;
  return new PriceBook(config, new PriceList(list));
}

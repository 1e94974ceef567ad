import { allowsModel, allowsTier, type TierPolicy } from "../../access/tier-policy.ts";
import type { ModelGateway } from "../../models/gateway.ts";
import type { ModelTarget } from "../../models/names.ts";
import type { PriceOrigin } from "../../models/prices/price-book.ts";
import { type ModelPriceView, priceView } from "../../models/prices/price-view.ts";

/** A name that `model` accepts, with the fields that clients of OpenAI and of Anthropic read, and our own. */
export interface ModelView {
  readonly id: string;
  readonly object: "model";
  readonly type: "model";
  /** When the server that offers it was started, in seconds: providers' own dates are unknown. */
  readonly created: number;
  readonly created_at: string;
  /** The provider; `gatehouse` for aliases and tiers. */
  readonly owned_by: string;
  readonly display_name: string;
  /** Like `id`. */
  readonly name: string;
  /** Null for a tier. */
  readonly provider: string | null;
  /** The target of the name, if it is an alias or a short form: `<provider>/<model>` or `tier:2`. */
  readonly alias_of: string | null;
  readonly tiers: readonly number[];
  /** Null for a tier: it depends on the model that answers. */
  readonly price: ModelPriceView | null;
  /**
   * Where the price comes from: the configuration or the price list. `none`: the model is free because no price is
   * known.
   */
  readonly price_origin: PriceOrigin | null;
  readonly allowed: boolean;
}

/** The names that clients may send as `model`, under one policy. */
export class ModelCatalog {
  readonly #gateway: Pick<ModelGateway, "tiers" | "names" | "priceOf">;
  /** In seconds. */
  readonly #since: number;

  /** @param startedAt when the configuration was read, in milliseconds */
  constructor(gateway: Pick<ModelGateway, "tiers" | "names" | "priceOf">, startedAt: number) {
    this.#gateway = gateway;
    this.#since = Math.floor(startedAt / 1_000);
  }

  /** All configured models, with the aliases and tiers that may be used. Sorted by id. */
  list(policy: TierPolicy): readonly ModelView[] {
    return this.#gateway.names.listed().flatMap((name) => this.find(policy, name) ?? []);
  }

  /** Null if the name does not exist, or is unlisted and may not be used. */
  find(policy: TierPolicy, name: string): ModelView | null {
    const { names } = this.#gateway;
    const target = names.resolve(name);
    if (!target) return null;
    const view = this.#view(policy, name, target);
    const isListed = view.alias_of === null && names.isConfigured(name);
    return view.allowed || isListed ? view : null;
  }

  #view(policy: TierPolicy, name: string, target: ModelTarget): ModelView {
    const { tiers, priceOf } = this.#gateway;
    const canonical = target.kind === "tier" ? `tier:${target.tier}` : target.id;
    const alias_of = canonical === name ? null : canonical;
    const common = {
      ...({ id: name, object: "model", type: "model" } as const),
      created: this.#since,
      created_at: new Date(this.#since * 1_000).toISOString(),
      display_name: name,
      name,
      alias_of,
    };
    if (target.kind === "tier") {
      const tier = tiers.list().find((each) => each.tier === target.tier);
      const models = tier?.models ?? [];
      return {
        ...common,
        ...(tier && alias_of === null ? { display_name: tier.name } : {}),
        ...{ owned_by: "gatehouse", provider: null, tiers: [target.tier], price: null, price_origin: null },
        allowed: allowsTier(policy, target.tier) && models.some((model) => allowsModel(policy, model)),
      };
    }
    const priced = priceOf(target.id);
    const provider = target.id.slice(0, target.id.indexOf("/"));
    return {
      ...common,
      owned_by: alias_of === null ? provider : "gatehouse",
      provider,
      tiers: tiers.list().flatMap(({ tier, models }) => (models.includes(target.id) ? [tier] : [])),
      price: priceView(priced.price),
      price_origin: priced.origin,
      allowed: tiers.allowsNamed(policy, target.id),
    };
  }
}

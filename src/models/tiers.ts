import { allowsModel, allowsTier, type TierPolicy, unreadableDeny } from "../access/tier-policy.ts";
import { isSameModel } from "../base/amazon-names.ts";
import { Problem } from "../base/errors.ts";
import type { Tier } from "../config/config.ts";

/** The configured routes: which models a tier may use, in the order in which they are tried. */
export class Tiers {
  readonly #tiers: ReadonlyMap<number, Tier>;
  readonly #isUnpriced: (model: string) => boolean;

  /** @param isUnpriced whether a model MUST NOT be called, because it has no price */
  constructor(tiers: ReadonlyMap<number, Tier>, isUnpriced: (model: string) => boolean) {
    this.#isUnpriced = isUnpriced;
    this.#tiers = new Map([...tiers].sort(([a], [b]) => a - b));
  }

  /** Lowest first. */
  list(): readonly Tier[] {
    return [...this.#tiers.values()];
  }

  numbers(): readonly number[] {
    return [...this.#tiers.keys()];
  }

  /**
   * The lowest tier that a policy allows.
   * @throws Problem 403 `tier_forbidden` if it allows none
   */
  lowest(policy: TierPolicy): number {
    for (const tier of this.#tiers.keys()) if (allowsTier(policy, tier)) return tier;
    throw new Problem("tier_forbidden", "The agent's policy allows none of the configured tiers.");
  }

  /**
   * Whether a policy allows a model by its name. If the model is in any tiers, the policy must also allow one of
   * them. A model that is in tiers only under another of Amazon's names counts as in those tiers.
   */
  allowsNamed(policy: TierPolicy, model: string): boolean {
    if (!allowsModel(policy, model)) return false;
    const exact = this.list().filter(({ models }) => models.includes(model));
    const carriers =
      exact.length > 0
        ? exact
        : this.list().filter(({ models }) => models.some((each) => isSameModel(each, model)));
    return carriers.length === 0 || carriers.some(({ tier }) => allowsTier(policy, tier));
  }

  /**
   * The models among these that may be called at their price; never empty.
   * @throws Problem 422 `model_unpriced`
   */
  priced(models: readonly string[]): readonly string[] {
    const priced = models.filter((model) => !this.#isUnpriced(model));
    if (priced.length > 0) return priced;
    const names = models.join(", ");
    throw new Problem(
      "model_unpriced",
      `${names}: no price is known. Add one to \`models\` in the configuration, or set \`prices.unknown\` to free.`,
    );
  }

  /**
   * The models of a tier that a policy allows and that have a price if they need one, in order; never empty.
   * @throws Problem 422 `unknown_tier`, `model_unpriced`, 403 `tier_forbidden`, `model_forbidden`
   */
  route(policy: TierPolicy, tier: number): readonly string[] {
    const configured = this.#tiers.get(tier);
    if (!configured) {
      throw new Problem(
        "unknown_tier",
        `There is no tier ${tier}. The configured tiers are ${this.numbers().join(", ")}.`,
        {
          errors: [{ path: "/tier", message: `must be one of ${this.numbers().join(", ")}` }],
        },
      );
    }
    if (!allowsTier(policy, tier))
      throw new Problem("tier_forbidden", `The agent's policy does not allow tier ${tier}.`);
    const models = configured.models.filter((model) => allowsModel(policy, model));
    if (models.length === 0) {
      const unreadable = unreadableDeny(policy);
      const why =
        unreadable === undefined
          ? ""
          : ` Its models.deny contains ${JSON.stringify(unreadable)}, which is not a pattern and denies every model.`;
      throw new Problem(
        "model_forbidden",
        `The agent's policy allows none of the models of tier ${tier}.${why}`,
      );
    }
    return this.priced(models);
  }
}

import { redact } from "../base/log.ts";
import type { Tier } from "../config/config.ts";

/** The target of a client's name for a model: one model, or a tier with its route. */
export type ModelTarget =
  | { readonly kind: "model"; readonly id: string }
  | { readonly kind: "tier"; readonly tier: number };

export interface ModelNamesConfig {
  /** The configured providers, by name. */
  readonly providers: ReadonlyMap<string, { readonly kind: string }>;
  readonly tiers: ReadonlyMap<number, Tier>;
  readonly prices: ReadonlyMap<string, unknown>;
  readonly aliases: ReadonlyMap<string, string>;
}

/**
 * The form of names that need no configuration. Each provider decides which part of such a name it puts into its URL.
 */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._:@+-]*(?:\/[A-Za-z0-9][A-Za-z0-9._:@+-]*)*$/;
const NAME_LIMIT = 200;
/**
 * Other spellings of a model's name, for kinds that put it into their URL. A policy that denies `gemini/gemini-3`
 * would not deny `gemini/models/gemini-3`.
 */
const OTHER_SPELLINGS: Readonly<Record<string, RegExp>> = {
  google: /^models\/|:/i,
  vertex: /^models\/|:/i,
  // An ARN may name any model, and prompts and profiles of the account that all workspaces share.
  bedrock: /^arn:/i,
};
const TIER = /^tier:([1-9][0-9]{0,8})$/;
const OTHER_MODELS = "(other)";
/** The prefix of the models that are part of this program. */
const EMBEDDED = "builtin/";

/** Whether a model is part of this program. */
export function isEmbedded(id: string): boolean {
  return id.startsWith(EMBEDDED);
}

/**
 * Resolves the model that a client requests. In this order: an alias without `*`, `<provider>/<model>`, `tier:2`, a
 * tier's name, the first alias with `*` that matches, and a model's own name if exactly one provider offers it.
 */
export class ModelNames {
  readonly #config: ModelNamesConfig;
  /** Models in the tiers and in the price list. */
  readonly #listed: ReadonlySet<string>;
  /** The listed models, by their names without the provider. */
  readonly #byOwnName = new Map<string, string[]>();

  constructor(config: ModelNamesConfig) {
    this.#config = config;
    this.#listed = new Set([
      ...[...config.tiers.values()].flatMap(({ models }) => models),
      ...config.prices.keys(),
    ]);
    for (const id of this.#listed) {
      const own = id.slice(id.indexOf("/") + 1);
      this.#byOwnName.set(own, [...(this.#byOwnName.get(own) ?? []), id]);
    }
  }

  /** The names to list: models in the tiers and in the price list, tiers, and aliases without `*`. Sorted. */
  listed(): readonly string[] {
    const { tiers, aliases } = this.#config;
    return [
      ...new Set([
        ...this.#listed,
        ...[...tiers.keys()].map((tier) => `tier:${tier}`),
        ...[...aliases.keys()].filter((alias) => !alias.includes("*")),
      ]),
    ].sort();
  }

  /** Whether this is the name of a model in the tiers or in the price list. */
  isConfigured(name: string): boolean {
    return this.#listed.has(name);
  }

  /**
   * The name under which a model is counted. Clients may invent names of models that are in no tier, and names are
   * stored for a long time, so all such models of a provider share one name.
   */
  countedAs(id: string): string {
    return this.#listed.has(id) ? id : `${id.slice(0, id.indexOf("/"))}/${OTHER_MODELS}`;
  }

  /** Null if there is no such model. */
  resolve(name: string): ModelTarget | null {
    const { aliases } = this.#config;
    const exact = name.includes("*") ? undefined : aliases.get(name);
    if (exact !== undefined) return this.#direct(exact);
    const direct = this.#direct(name);
    if (direct) return direct;
    for (const [alias, target] of aliases) {
      const matched = matchOf(alias, name);
      // A function, since `$&` in a replacement would be interpreted.
      if (matched !== null) return this.#direct(target.replace("*", () => matched));
    }
    const [only, ...others] = this.#byOwnName.get(name) ?? [];
    return only !== undefined && others.length === 0 ? { kind: "model", id: only } : null;
  }

  /** The names of the providers that a request for this target may go to. */
  providersOf(target: ModelTarget): readonly string[] {
    const models =
      target.kind === "model" ? [target.id] : (this.#config.tiers.get(target.tier)?.models ?? []);
    return [...new Set(models.map((id) => id.slice(0, id.indexOf("/"))))];
  }

  /** `<provider>/<model>`, `tier:2` or a tier's name. */
  #direct(name: string): ModelTarget | null {
    const { providers, tiers } = this.#config;
    const slash = name.indexOf("/");
    if (this.#listed.has(name)) return { kind: "model", id: name };
    // The ledger keeps names, so a secret sent in the wrong field must not be accepted as one.
    const isPossible = name.length <= NAME_LIMIT && MODEL_NAME.test(name) && redact(name) === name;
    const provider = providers.get(name.slice(0, Math.max(0, slash)));
    if (isPossible && !isEmbedded(name) && provider) {
      const isOther = OTHER_SPELLINGS[provider.kind]?.test(name.slice(slash + 1)) === true;
      return isOther ? null : { kind: "model", id: name };
    }
    const number = Number(TIER.exec(name)?.[1]);
    if (tiers.has(number)) return { kind: "tier", tier: number };
    for (const { tier, name: own } of tiers.values()) if (own === name) return { kind: "tier", tier };
    return null;
  }
}

/** The characters that `*` matches in a name; null if the pattern has no `*` or does not match. */
function matchOf(pattern: string, name: string): string | null {
  const star = pattern.indexOf("*");
  if (star < 0) return null;
  const [before, after] = [pattern.slice(0, star), pattern.slice(star + 1)];
  const isMatch =
    name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after);
  return isMatch ? name.slice(before.length, name.length - after.length) : null;
}

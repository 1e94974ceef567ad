import { isGlob, matchesAny, restrictsModel } from "../base/glob.ts";

/** Of an agent: the tiers it may use, and globs of models allowed and denied. */
export interface TierPolicy {
  /** Null: every configured tier. */
  readonly tiers: readonly number[] | null;
  readonly models: { readonly allow: readonly string[]; readonly deny: readonly string[] };
}

export const OPEN_POLICY: TierPolicy = { tiers: null, models: { allow: ["*"], deny: [] } };

export function allowsTier(policy: TierPolicy, tier: number): boolean {
  return policy.tiers === null || policy.tiers.includes(tier);
}

/** What is denied stays denied, whatever is allowed. */
export function allowsModel(policy: TierPolicy, model: string): boolean {
  return matchesAny(policy.models.allow, model) && !restrictsModel(policy.models.deny, model);
}

/** A pattern, stored by an older version, that is not a glob and therefore denies every model. */
export function unreadableDeny({ models }: TierPolicy): string | undefined {
  return models.deny.find((pattern) => !isGlob(pattern));
}

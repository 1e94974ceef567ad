import { isGlob, matchesAny, restrictsModel } from "../base/glob.ts";

/** The tiers that an agent may use, and globs of allowed and denied models. */
export interface TierPolicy {
  /** Null means every configured tier. */
  readonly tiers: readonly number[] | null;
  readonly models: { readonly allow: readonly string[]; readonly deny: readonly string[] };
}

export const OPEN_POLICY: TierPolicy = { tiers: null, models: { allow: ["*"], deny: [] } };

export function allowsTier(policy: TierPolicy, tier: number): boolean {
  return policy.tiers === null || policy.tiers.includes(tier);
}

/** Whether a model is allowed. Denied models stay denied, whatever is allowed. */
export function allowsModel(policy: TierPolicy, model: string): boolean {
  return matchesAny(policy.models.allow, model) && !restrictsModel(policy.models.deny, model);
}

/** A pattern that an older version stored, that is not a glob and therefore denies every model. */
export function unreadableDeny({ models }: TierPolicy): string | undefined {
  return models.deny.find((pattern) => !isGlob(pattern));
}

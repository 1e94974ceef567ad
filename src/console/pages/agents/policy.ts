import { matchesAny, restrictsModel } from "../../../base/glob.ts";
import type { Tier } from "../../../http/api.ts";

/** The tiers and model patterns of an agent. */
export interface Policy {
  readonly tiers: readonly number[];
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** Whether a tier's model may be used. `place` is the model's place in the route, from 1. */
export type ModelVerdict =
  | { readonly kind: "absent" }
  | { readonly kind: "allowed"; readonly place: number }
  /** The agent may not use the tier. */
  | { readonly kind: "tier"; readonly place: number }
  /** The pattern that denies the model; null if no pattern allows it. */
  | { readonly kind: "pattern"; readonly place: number; readonly pattern: string | null };

/** The server's rule (`src/access/tier-policy.ts`) with its reason: denials take precedence over permissions. */
export function verdictOn(policy: Policy, { tier, models }: Tier, model: string): ModelVerdict {
  const place = models.findIndex(({ name }) => name === model) + 1;
  if (place === 0) return { kind: "absent" };
  if (!policy.tiers.includes(tier)) return { kind: "tier", place };
  const denying = policy.deny.find((pattern) => restrictsModel([pattern], model));
  if (denying !== undefined) return { kind: "pattern", place, pattern: denying };
  if (!matchesAny(policy.allow, model)) return { kind: "pattern", place, pattern: null };
  return { kind: "allowed", place };
}

/** The models that a task of this tier would try, in order. */
export function routeOf(policy: Policy, tier: Tier): readonly string[] {
  return tier.models
    .map(({ name }) => name)
    .filter((name) => verdictOn(policy, tier, name).kind === "allowed");
}

/** All models of the tiers, in route order. */
export function modelsOf(tiers: readonly Tier[]): readonly string[] {
  return [...new Set(tiers.flatMap(({ models }) => models.map(({ name }) => name)))];
}

import { systemClock } from "../../base/clock.ts";
import type { Config } from "../../config/config.ts";
import { type ModelOverview, modelOverview } from "../../models/overview.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** Whether each tier has a model that can be reached. Opens a connection to each provider, and calls no model. */
export async function checkModels(config: Config): Promise<Finding[]> {
  const models = await modelOverview(config, systemClock);
  return [...config.tiers.values()].map(({ tier }) =>
    tierFinding(
      tier,
      models.filter(({ tiers }) => tiers.includes(tier)),
    ),
  );
}

export function tierFinding(
  tier: number,
  models: readonly Pick<ModelOverview, "name" | "reachable" | "unreachable_reason" | "refused">[],
): Finding {
  const usable = models.filter(({ reachable, refused }) => reachable !== false && !refused);
  const others = models.filter((model) => !usable.includes(model));
  const names = (some: typeof models) => some.map(({ name }) => name).join(", ");
  const why = others
    .map(
      ({ name, refused, unreachable_reason: reason }) => `${name} (${refused ? "it has no price" : reason})`,
    )
    .join(", ");
  const hint = "see `gatehouse models`, and check the provider's base_url and this machine's network";
  if (usable.length === 0)
    return fail("models", `tier ${tier} has no model that can be called: ${why}`, hint);
  if (others.length > 0) return warn("models", `tier ${tier} uses ${names(usable)}, but not ${why}`, hint);
  return ok("models", `tier ${tier}: ${names(usable)}`);
}

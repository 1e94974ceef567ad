import { Elysia } from "elysia";
import type { Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import { allowsModel, allowsTier, OPEN_POLICY, type TierPolicy } from "../../access/tier-policy.ts";
import { toCredits } from "../../base/credits.ts";
import type { Tier } from "../../config/config.ts";
import type { ModelGateway } from "../../models/gateway.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, page } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

export interface ModelRouteParts {
  readonly models: ModelGateway;
  readonly agents: Agents;
}

export function modelRoutes(endpoints: EndpointContext, parts: ModelRouteParts) {
  const tag = "Models";
  const { tiers } = parts.models;

  /** A token without an agent has no policy of its own. */
  async function policyOf(caller: Caller): Promise<TierPolicy> {
    if (!caller.agent) return OPEN_POLICY;
    return (await parts.agents.get(caller.workspaceId, caller.agent.name)).tierPolicy;
  }

  const models = endpoint(
    endpoints,
    {
      action: "model.list",
      scope: "agents:read",
      summary: "List the models of all tiers, by name",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const policy = await policyOf(call.caller);
      const after = decodeCursor(cursor, () => true) ?? "";
      const names = [...new Set(tiers.list().flatMap((tier) => tier.models))]
        .sort()
        .filter((name) => name > after);
      const body = page(
        names,
        limit,
        (name) => name,
        (name) => viewModel(parts.models, policy, name),
      );
      return { status: 200, body };
    },
  );

  const list = endpoint(
    endpoints,
    {
      action: "tier.list",
      scope: "agents:read",
      summary: "List the tiers and their routes, lowest first",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const policy = await policyOf(call.caller);
      const after = Number(decodeCursor(cursor, (key) => /^\d{1,15}$/.test(key)) ?? 0);
      const found = tiers.list().filter((tier) => tier.tier > after);
      const body = page(
        found,
        limit,
        (tier) => String(tier.tier),
        (tier) => viewTier(policy, tier),
      );
      return { status: 200, body };
    },
  );

  return new Elysia({ prefix: "/v1" })
    .get("/models", models.handle, models.hook)
    .get("/tiers", list.handle, list.hook);
}

/** A model of the configured tiers. Prices are credits per 1,000 tokens. */
export function viewModel(
  { tiers, price }: Pick<ModelGateway, "tiers" | "price">,
  policy: TierPolicy,
  name: string,
) {
  const carriers = tiers.list().filter((tier) => tier.models.includes(name));
  const { input, output } = price(name);
  return {
    name,
    provider: name.slice(0, name.indexOf("/")),
    tiers: carriers.map((tier) => tier.tier),
    price: { input: toCredits(input), output: toCredits(output) },
    allowed: allowsModel(policy, name) && carriers.some((tier) => allowsTier(policy, tier.tier)),
  };
}

/** A tier with its route: the models in the order in which they are tried. */
export function viewTier(policy: TierPolicy, { tier, name, models }: Tier) {
  return {
    tier,
    name,
    models: models.map((model) => ({
      name: model,
      allowed: allowsTier(policy, tier) && allowsModel(policy, model),
    })),
    allowed: allowsTier(policy, tier) && models.some((model) => allowsModel(policy, model)),
  };
}

import { Elysia } from "elysia";
import Type, { type Static } from "typebox";
import type { Agents } from "../../access/agents.ts";
import { allowsModel, allowsTier, OPEN_POLICY, type TierPolicy } from "../../access/tier-policy.ts";
import type { Clock } from "../../base/clock.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { Tier } from "../../config/config.ts";
import { AGENT_HEADERS, callingAgent } from "../../dialects/calling-agent.ts";
import type { Call } from "../../gate/call.ts";
import type { ModelGateway } from "../../models/gateway.ts";
import { ANY_CLIENT } from "../answer/client-errors.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, PAGE, page } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { ModelCatalog, type ModelView } from "./model-catalog.ts";

const MODEL_ID = Type.String({ minLength: 1, maxLength: 300 });
/** Sent by Anthropic's clients. */
const BETA = { beta: Type.Optional(Type.Boolean({ description: "Has no effect." })) };
const MODEL_QUERY = Type.Object(BETA, { additionalProperties: false });
const MODELS_QUERY = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        ...{ minimum: 1, maximum: 1_000 },
        description: "The maximum number of models. Default: all. A page also ends at 4 MiB.",
      }),
    ),
    after_id: Type.Optional({ ...MODEL_ID, description: "Continues after this model: `last_id` of a page." }),
    before_id: Type.Optional({ ...MODEL_ID, description: "Ends before this model: `first_id` of a page." }),
    cursor: PAGE.cursor,
    ...BETA,
  },
  { additionalProperties: false },
);

type ModelsQuery = Static<typeof MODELS_QUERY>;

export interface ModelRouteParts {
  readonly models: ModelGateway;
  readonly agents: Agents;
  readonly clock: Clock;
}

export function modelRoutes(endpoints: EndpointContext, parts: ModelRouteParts) {
  const tag = "Models";
  const { tiers } = parts.models;
  const catalog = new ModelCatalog(parts.models, parts.clock.now());
  const forClients = {
    scope: ["agents:read", "models:call"],
    ...{ tag, client: ANY_CLIENT, headers: AGENT_HEADERS, status: 200 },
  } as const;

  /** A caller without an agent has no policy. */
  async function policyOf(call: Call, headers: Headers): Promise<TierPolicy> {
    return (await callingAgent(parts.agents, call, headers))?.tierPolicy ?? OPEN_POLICY;
  }

  const models = endpoint(
    endpoints,
    {
      ...forClients,
      action: "model.list",
      summary: "List the models by name, with the aliases and tiers that the caller may use",
      query: MODELS_QUERY,
    },
    async ({ call, query, request: { headers } }) => {
      const body = pageOfModels(catalog.list(await policyOf(call, headers)), query);
      return { status: 200, body };
    },
  );

  const model = endpoint(
    endpoints,
    {
      ...forClients,
      action: "model.read",
      summary: "Read a model by the name that `model` takes",
      query: MODEL_QUERY,
    },
    async ({ call, params, request: { headers } }) => {
      // A name may contain slashes: `/v1/models/openai/gpt-5` is `/v1/models/openai%2Fgpt-5`.
      const name = params.id ?? params["*"] ?? "";
      const body = catalog.find(await policyOf(call, headers), name);
      if (body) return { status: 200, body };
      const shown = JSON.stringify(name.slice(0, 200));
      throw new Problem(
        "model_not_found",
        `There is no model, tier or alias ${shown}, or it may not be used. GET /v1/models lists them.`,
      );
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
      const policy = await policyOf(call, new Headers());
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
    .get("/models/:id", model.handle, model.hook)
    .get("/models/*", model.handle, { ...model.hook, detail: { hide: true } })
    .get("/tiers", list.handle, list.hook);
}

/**
 * A page as all clients read it: `next_cursor` is ours, `first_id`, `last_id` and `has_more` are Anthropic's, and
 * OpenAI's clients expect one page with all models.
 * @throws Problem 422 `validation_failed`
 */
function pageOfModels(models: readonly ModelView[], query: ModelsQuery) {
  const { limit = models.length, cursor, after_id, before_id } = query;
  if (before_id !== undefined && (after_id ?? cursor) !== undefined) {
    throw invalidField("/before_id", "cannot be combined with after_id or cursor");
  }
  if (after_id !== undefined && cursor !== undefined) {
    throw invalidField("/after_id", "cannot be combined with cursor");
  }
  const isBackwards = before_id !== undefined;
  const after = after_id ?? decodeCursor(cursor, () => true) ?? "";
  const found = isBackwards
    ? models.filter(({ id }) => id < before_id).reverse()
    : models.filter(({ id }) => id > after);
  const { data, next_cursor } = page(
    found,
    limit,
    ({ id }) => id,
    (model) => model,
  );
  const shown = isBackwards ? data.reverse() : data;
  return {
    object: "list" as const,
    data: shown,
    has_more: next_cursor !== null,
    first_id: shown[0]?.id ?? null,
    last_id: shown.at(-1)?.id ?? null,
    // A cursor only leads forwards.
    next_cursor: isBackwards ? null : next_cursor,
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

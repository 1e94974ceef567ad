import type { Agent } from "../access/agents.ts";
import { Problem } from "../base/errors.ts";
import type { Call } from "../gate/call.ts";
import type { ClientModel, ModelGateway } from "../models/gateway.ts";
import { CallPolicy, type CallPolicyParts } from "./call-policy.ts";
import { callingAgent } from "./calling-agent.ts";
import type { ClientRequest } from "./client-request.ts";
import type { DialectRequest } from "./dialect.ts";

/** The route of a client's request. */
export interface ClientRoute {
  readonly agent: Agent | null;
  readonly request: DialectRequest;
  readonly policy: CallPolicy;
  /** The models that the policy allows, in the order in which to try them. */
  readonly models: readonly ClientModel[];
}

/**
 * Reads a client's request and finds the models that it may call.
 * @throws Problem 400, 403, 404 or 422: nothing may be sent
 */
export async function findRoute(
  parts: CallPolicyParts & { readonly modelGateway: ModelGateway },
  call: Call,
  client: ClientRequest,
): Promise<ClientRoute> {
  const { modelGateway, agents } = parts;
  const { dialect } = client.api;
  const agent = await callingAgent(agents, call, client.headers);
  const { request } = client;
  const target = modelGateway.names.resolve(request.model);
  if (!target) throw unknownModel(request.model);
  call.about(target.kind === "tier" ? { tier: target.tier } : { model: target.id });
  const { workspaceId } = call.caller;
  const policy = new CallPolicy(parts, workspaceId, agent);
  const models = modelGateway.openForClient({ dialect, workspaceId, policy: policy.read }, target);
  return { agent, request, policy, models };
}

function unknownModel(name: string): Problem {
  const shown = JSON.stringify(name.slice(0, 200));
  return new Problem(
    "model_not_found",
    `There is no model, tier or alias ${shown}. GET /v1/models lists them.`,
    {
      errors: [{ path: "/model", message: "must be the name of a model, a tier or an alias" }],
    },
  );
}

import { Elysia } from "elysia";
import type { Agent, Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import type { Workspaces } from "../../access/workspaces.ts";
import type { Catalogue } from "../../connectors/catalogue.ts";
import { type Connector, isConnectorName } from "../../connectors/connector.ts";
import type { Connectors } from "../../connectors/connectors.ts";
import { ConnectorCreate } from "../../connectors/definition/request.ts";
import type { ProgramRules } from "../../connectors/program-rules.ts";
import type { TextParts } from "../answer/json-parts.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY } from "../answer/page.ts";
import { connectorJson, connectorPage } from "../connector-view.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

/**
 * Maximum number of members of a body that contains an OpenAPI document as an object. A larger document can be sent
 * as text or by URL.
 */
const INLINE_DOCUMENT_MEMBERS = 100_000;

export interface ConnectorRouteParts {
  readonly connectors: Connectors;
  readonly programs: Pick<ProgramRules, "mayAdd">;
  readonly catalogue: Catalogue;
  readonly agents: Agents;
  readonly workspaces: Workspaces;
}

export function connectorRoutes(endpoints: EndpointContext, parts: ConnectorRouteParts) {
  const { connectors, programs, catalogue, agents, workspaces } = parts;
  const tag = "Connectors";

  const list = endpoint(
    endpoints,
    {
      action: "connector.list",
      scope: "connectors:read",
      summary: "List connectors with their tools, by name",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const { caller } = call;
      const after = decodeCursor(cursor, isConnectorName);
      const agent = await actingAgent(caller);
      const { createdAt } = workspaces.get(caller.workspaceId);
      const found = connectors
        .list(caller.workspaceId, createdAt)
        .filter(({ name }) => after === undefined || name > after);
      return { status: 200, json: await connectorPage(found, limit, view(caller, agent)) };
    },
  );

  const create = endpoint(
    endpoints,
    {
      action: "connector.authorise",
      scope: "connectors:write",
      summary: "Add a connector: an MCP server, or an API described by an OpenAPI document",
      tag,
      body: ConnectorCreate,
      bodyMembers: INLINE_DOCUMENT_MEMBERS,
      slow: true,
      status: 201,
    },
    async ({ call, body }) => {
      const connector = await connectors.create(call, body);
      return { status: 201, json: await view(call.caller, await actingAgent(call.caller))(connector) };
    },
  );

  const refresh = endpoint(
    endpoints,
    {
      action: "connector.refresh",
      scope: "connectors:write",
      summary: "Refresh a connector's tools",
      tag,
      slow: true,
      status: 200,
    },
    async ({ call, params: { name = "" } }) => {
      const connector = await connectors.refresh(call, name);
      return { status: 200, json: await view(call.caller, await actingAgent(call.caller))(connector) };
    },
  );

  const remove = endpoint(
    endpoints,
    {
      action: "connector.remove",
      scope: "connectors:write",
      summary: "Remove a connector, its secrets and its tools; calls in progress fail",
      tag,
      slow: true,
      status: 204,
    },
    async ({ call, params: { name = "" } }) => {
      await connectors.remove(call, name);
      return { status: 204 };
    },
  );

  async function actingAgent({ workspaceId, agent }: Caller): Promise<Agent | null> {
    return agent ? ((await agents.byId(workspaceId, agent.id)) ?? null) : null;
  }

  /** A token acting as an agent sees only the tools that this agent may use. */
  function view(caller: Caller, agent: Agent | null) {
    const seesOutput = programs.mayAdd(caller);
    return (connector: Connector): Promise<TextParts> =>
      connectorJson(
        caller.workspaceId,
        seesOutput ? withOutput(connector) : connector,
        catalogue.toolsOf(caller.workspaceId, connector.name),
        agent,
      );
  }

  return new Elysia({ prefix: "/v1/connectors" })
    .get("", list.handle, list.hook)
    .post("", create.handle, create.hook)
    .delete("/:name", remove.handle, remove.hook)
    .post("/:name/refresh", refresh.handle, refresh.hook);
}

/** The same connector, with its program's output added to the error. */
function withOutput(connector: Connector): Connector {
  const { error, output } = connector;
  return error === null || output === undefined
    ? connector
    : { ...connector, error: `${error} Its program wrote: ${output}` };
}

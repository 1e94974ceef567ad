import { Elysia } from "elysia";
import Type from "typebox";
import type { Agent, Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import type { Workspaces } from "../../access/workspaces.ts";
import { timestamp } from "../../base/clock.ts";
import { matchesAny, restrictsTool } from "../../base/glob.ts";
import type { Catalogue, CatalogueTool } from "../../connectors/catalogue.ts";
import { type Connector, isConnectorName } from "../../connectors/connector.ts";
import type { Connectors } from "../../connectors/connectors.ts";
import type { ProgramRules } from "../../connectors/programs.ts";
import { ConnectorCreate } from "../../connectors/request.ts";
import { type Door, endpoint } from "../endpoint.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, page } from "../page.ts";

/** Members of a body with an OpenAPI document in it as an object. A larger document can be sent as a text, or by its URL. */
const INLINE_DOCUMENT_MEMBERS = 100_000;

export interface ConnectorRouteParts {
  readonly connectors: Connectors;
  readonly programs: Pick<ProgramRules, "mayAdd">;
  readonly catalogue: Catalogue;
  readonly agents: Agents;
  readonly workspaces: Workspaces;
}

export function connectorRoutes(door: Door, parts: ConnectorRouteParts) {
  const { connectors, programs, catalogue, agents, workspaces } = parts;
  const tag = "Connectors";

  const list = endpoint(
    door,
    {
      action: "connector.list",
      scope: "connectors:read",
      summary: "List connectors with their tools, by name",
      tag,
      query: Type.Object(PAGE, { additionalProperties: false }),
      status: 200,
    },
    async ({ call: { caller }, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const after = decodeCursor(cursor, isConnectorName);
      const agent = await actingAgent(caller);
      const { createdAt } = workspaces.get(caller.workspaceId);
      const found = connectors
        .list(caller.workspaceId, createdAt)
        .filter(({ name }) => after === undefined || name > after);
      return { status: 200, body: page(found, limit, ({ name }) => name, view(caller, agent)) };
    },
  );

  const create = endpoint(
    door,
    {
      action: "connector.authorise",
      scope: "connectors:write",
      summary: "Let a connector in: an MCP server, or an API that an OpenAPI document describes",
      tag,
      body: ConnectorCreate,
      bodyMembers: INLINE_DOCUMENT_MEMBERS,
      slow: true,
      status: 201,
    },
    async ({ call, body }) => {
      const connector = await connectors.create(call, body);
      return { status: 201, body: view(call.caller, await actingAgent(call.caller))(connector) };
    },
  );

  const refresh = endpoint(
    door,
    {
      action: "connector.refresh",
      scope: "connectors:write",
      summary: "Ask a connector for its tools anew",
      tag,
      slow: true,
      status: 200,
    },
    async ({ call, params: { name = "" } }) => {
      const connector = await connectors.refresh(call, name);
      return { status: 200, body: view(call.caller, await actingAgent(call.caller))(connector) };
    },
  );

  const remove = endpoint(
    door,
    {
      action: "connector.remove",
      scope: "connectors:write",
      summary: "Remove a connector, its secrets and its tools; calls that are out fail",
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

  /** A token that acts as an agent is shown the tools that this agent may use. */
  function view(caller: Caller, agent: Agent | null) {
    const seesOutput = programs.mayAdd(caller);
    return (connector: Connector) =>
      viewConnector(
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

/** The same connector, whose error repeats what its program wrote. */
function withOutput(connector: Connector): Connector {
  const { error, output } = connector;
  return error === null || output === undefined
    ? connector
    : { ...connector, error: `${error} Its program wrote: ${output}` };
}

/** A connector as clients read it (contract, section 6), with those of its tools that `agent` may use. */
export function viewConnector(connector: Connector, tools: readonly CatalogueTool[], agent: Agent | null) {
  return {
    name: connector.name,
    kind: connector.kind,
    status: connector.status,
    ...(connector.error === null ? {} : { error: connector.error }),
    authorised_by: connector.authorisedBy,
    authorised_at: timestamp(connector.authorisedAt),
    scopes: connector.scopes,
    tools: tools
      .filter(({ name }) => agent === null || matchesAny(agent.tools, name))
      .map((tool) => viewTool(tool, agent)),
  };
}

function viewTool({ name, offered }: CatalogueTool, agent: Agent | null) {
  const { description, inputSchema, destructive } = offered;
  return {
    name,
    description,
    input_schema: inputSchema,
    destructive,
    approval: agent?.approvals == null ? destructive : restrictsTool(agent.approvals, name),
  };
}

import type { Agent } from "../access/agents.ts";
import type { JsonSchema } from "../agents/index.ts";
import { timestamp } from "../base/clock.ts";
import type { CatalogueTool } from "../connectors/catalogue.ts";
import type { Connector } from "../connectors/connector.ts";
import { toolsAllowed, toolsToApprove } from "../connectors/registry.ts";
import { PAGE_BYTES } from "../store/page-bytes.ts";
import type { TextParts } from "./answer/json-parts.ts";
import { encodeCursor } from "./answer/page.ts";

/** A connector's tool as clients read it (contract, section 6). */
export interface ToolView {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly destructive: boolean;
  readonly approval: boolean;
}

/** A connector as clients read it (contract, section 6). */
export interface ConnectorView {
  readonly name: string;
  readonly kind: Connector["kind"];
  readonly status: Connector["status"];
  readonly error?: string;
  readonly authorised_by: string;
  readonly authorised_at: string;
  readonly scopes: readonly string[];
  readonly tools: readonly ToolView[];
}

/** Characters of a tool apart from its text. */
const TOOL_FRAME = 120;

/** A tool, and whether its calls need a person's approval. */
interface ShownTool {
  readonly tool: CatalogueTool;
  readonly approval: boolean;
}

/**
 * A `ConnectorView` as JSON, with the tools that `agent` may use. Tools may have megabytes of schemas, which are kept as
 * text and not parsed here. Other work runs while thousands of tools are compared with hundreds of globs.
 */
export async function connectorJson(
  workspaceId: number,
  connector: Connector,
  tools: readonly CatalogueTool[],
  agent: Agent | null,
): Promise<TextParts> {
  const shown = await shownTools(workspaceId, tools, agent);
  let length = (connector.error?.length ?? 0) + connector.scopes.join().length + TOOL_FRAME;
  for (const {
    tool: { name, offered },
  } of shown) {
    length += TOOL_FRAME + name.length + offered.description.length + offered.inputSchemaJson.length;
  }
  const view: Omit<ConnectorView, "tools"> = {
    name: connector.name,
    kind: connector.kind,
    status: connector.status,
    ...(connector.error === null ? {} : { error: connector.error }),
    authorised_by: connector.authorisedBy,
    authorised_at: timestamp(connector.authorisedAt),
    scopes: connector.scopes,
  };
  return {
    length,
    *parts() {
      yield `${JSON.stringify(view).slice(0, -1)},"tools":[`;
      for (const [index, tool] of shown.entries()) yield `${index === 0 ? "" : ","}${toolJson(tool)}`;
      yield "]}";
    },
  };
}

/**
 * The first connectors as JSON, as many as `limit` and the page's bytes allow. A single connector may have about 8 MiB
 * of tools. At most one connector that does not fit is viewed.
 */
export async function connectorPage(
  found: readonly Connector[],
  limit: number,
  view: (connector: Connector) => Promise<TextParts>,
): Promise<TextParts> {
  const shown: TextParts[] = [];
  let length = 0;
  for (const connector of found.slice(0, limit)) {
    const viewed = await view(connector);
    length += viewed.length;
    if (shown.length > 0 && length > PAGE_BYTES) break;
    shown.push(viewed);
  }
  const last = found[shown.length - 1];
  return pageJson(shown, shown.length < found.length && last ? encodeCursor(last.name) : null);
}

/** A page of a list, as JSON. */
function pageJson(items: readonly TextParts[], nextCursor: string | null): TextParts {
  return {
    length: items.reduce((sum, { length }) => sum + length, 0),
    *parts() {
      yield '{"data":[';
      for (const [index, item] of items.entries()) {
        if (index > 0) yield ",";
        yield* item.parts();
      }
      yield `],"next_cursor":${JSON.stringify(nextCursor)}}`;
    },
  };
}

async function shownTools(
  workspaceId: number,
  tools: readonly CatalogueTool[],
  agent: Agent | null,
): Promise<readonly ShownTool[]> {
  const allowed = agent && (await toolsAllowed(workspaceId, tools, agent.tools));
  const toApprove = agent?.approvals && (await toolsToApprove(workspaceId, tools, agent.approvals));
  return tools.flatMap((tool, index) => {
    if (allowed && !allowed.has(index)) return [];
    return [{ tool, approval: toApprove ? toApprove.has(index) : tool.offered.destructive }];
  });
}

function toolJson({ tool: { name, offered }, approval }: ShownTool): string {
  const { description, inputSchemaJson, destructive } = offered;
  const head = JSON.stringify({ name, description }).slice(0, -1);
  return `${head},"input_schema":${inputSchemaJson},"destructive":${destructive},"approval":${approval}}`;
}

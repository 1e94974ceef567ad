import type { Agent } from "../access/agents.ts";
import type { JsonSchema } from "../agents/index.ts";
import { timestamp } from "../base/clock.ts";
import { matchesAny, restrictsTool } from "../base/glob.ts";
import type { CatalogueTool } from "../connectors/catalogue.ts";
import type { Connector } from "../connectors/connector.ts";
import type { TextParts } from "./answer/json-parts.ts";

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

/**
 * A `ConnectorView` as JSON, with the tools that `agent` may use. Tools may have megabytes of schemas, which are kept as
 * text and not parsed here.
 */
export function connectorJson(
  connector: Connector,
  tools: readonly CatalogueTool[],
  agent: Agent | null,
): TextParts {
  const shown = tools.filter(({ name }) => agent === null || matchesAny(agent.tools, name));
  let length = (connector.error?.length ?? 0) + connector.scopes.join().length + TOOL_FRAME;
  for (const { name, offered } of shown) {
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
      for (const [index, tool] of shown.entries()) yield `${index === 0 ? "" : ","}${toolJson(tool, agent)}`;
      yield "]}";
    },
  };
}

/** A page of a list, as JSON. */
export function pageJson(items: readonly TextParts[], nextCursor: string | null): TextParts {
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

function toolJson({ name, offered }: CatalogueTool, agent: Agent | null): string {
  const { description, inputSchemaJson, destructive } = offered;
  const approval = agent?.approvals == null ? destructive : restrictsTool(agent.approvals, name);
  const head = JSON.stringify({ name, description }).slice(0, -1);
  return `${head},"input_schema":${inputSchemaJson},"destructive":${destructive},"approval":${approval}}`;
}

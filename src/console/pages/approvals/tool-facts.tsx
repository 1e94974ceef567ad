import type { JSX } from "preact";
import type { Connector, Tool } from "../../../http/api.ts";
import { Badge, Status } from "../../parts/badge.tsx";
import { Card, Facts } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import type { Loaded } from "../../state/use-data.ts";
import { ExactText } from "./exact.tsx";

type Connectors = Loaded<{ readonly data: readonly Connector[] }>;

/** The tool as its connector describes it. */
export function ToolFacts({
  name,
  connectors,
}: {
  readonly name: string;
  readonly connectors: Connectors;
}): JSX.Element {
  const { can } = useSession();
  const [connector, tool] = find(connectors.data?.data ?? [], name);
  return (
    <Card title="The tool">
      <Facts
        of={[
          ["Tool", <code key="tool">{name}</code>],
          connector
            ? [
                "Connector",
                <span class="row" key="connector">
                  <a href={`/console/connectors/${encodeURIComponent(connector.name)}`}>{connector.name}</a>
                  <span class="muted">{connector.kind}</span>
                  <Status status={connector.status} />
                </span>,
              ]
            : null,
          tool
            ? [
                "Effect",
                tool.destructive ? (
                  <Badge key="effect" tone="bad" text="can change or destroy" />
                ) : (
                  <span key="effect">Not marked as destructive by its connector</span>
                ),
              ]
            : null,
        ]}
      />
      {tool?.description ? (
        <ExactText text={tool.description} label="The connector's description of the tool" />
      ) : (
        <p class="muted small">{whyNothing(can("connectors:read"), connectors, tool)}</p>
      )}
    </Card>
  );
}

function whyNothing(mayRead: boolean, { data, problem }: Connectors, tool: Tool | undefined): string {
  if (!mayRead) return "To see what the tool does, you need the scope connectors:read.";
  if (tool) return "Its connector gives no description.";
  if (problem) return `The connectors could not be read: ${problem.message}`;
  if (!data) return "Loading its description …";
  return "No connector currently offers it, so a call would fail.";
}

function find(
  connectors: readonly Connector[],
  name: string,
): [connector: Connector | undefined, tool: Tool | undefined] {
  for (const connector of connectors) {
    const tool = connector.tools.find((one) => one.name === name);
    if (tool) return [connector, tool];
  }
  return [connectors.find((one) => name.startsWith(`${one.name}.`)), undefined];
}

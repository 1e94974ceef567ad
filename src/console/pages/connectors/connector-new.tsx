import type { JSX } from "preact";
import { useLocation } from "preact-iso";
import type { Connector } from "../../../http/api.ts";
import { Lacking } from "../../parts/lacking.tsx";
import { Card, Page, Tabs } from "../../parts/page.tsx";
import { plural } from "../../parts/text.tsx";
import { notify } from "../../parts/toast.tsx";
import { useSession } from "../../state/session.tsx";
import { NewMcp } from "./new-mcp.tsx";
import { NewOpenApi } from "./new-openapi.tsx";
import { PasteServers } from "./paste-servers.tsx";

const ADDRESS = "/console/connectors/-/new";
const KINDS = [
  ["program", "Program (stdio)"],
  ["server", "Server (HTTP, SSE)"],
  ["openapi", "HTTP API (OpenAPI)"],
  ["paste", "Paste JSON"],
] as const;

/** Adds a connector: a form for each kind, or a pasted configuration. */
export function ConnectorNew(): JSX.Element {
  const { can } = useSession();
  const { query, route } = useLocation();
  const kind = KINDS.find(([name]) => name === query.kind)?.[0] ?? "program";

  function added({ name, status, tools }: Connector): void {
    if (status === "ready") notify(`${name} was added, with ${plural(tools.length, "tool")}.`);
    else notify(`${name} was added, but cannot be reached yet.`, { isBad: true });
    route(`/console/connectors/${encodeURIComponent(name)}`);
  }

  if (!can("connectors:write")) {
    return (
      <Page title="Add a connector" lead={<a href="/console/connectors">All connectors</a>}>
        <Lacking scope="connectors:write" what="add connectors" />
      </Page>
    );
  }
  return (
    <Page
      title="Add a connector"
      lead="It is added in your name. Its credentials are stored encrypted and never shown again."
      actions={
        <a class="button" href="/console/connectors">
          All connectors
        </a>
      }
    >
      <Tabs
        label="Kinds of connectors"
        of={KINDS.map(([name, label]) => [`${ADDRESS}?kind=${name}`, label])}
        current={`${ADDRESS}?kind=${kind}`}
      />
      <Card>
        {kind === "program" && <NewMcp key="stdio" type="stdio" added={added} />}
        {kind === "server" && <NewMcp key="http" type="http" added={added} />}
        {kind === "openapi" && <NewOpenApi added={added} />}
        {kind === "paste" && <PasteServers />}
      </Card>
    </Page>
  );
}

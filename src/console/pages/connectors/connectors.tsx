import type { JSX } from "preact";
import { useLocation } from "preact-iso";
import type { Connector } from "../../../http/api.ts";
import { TextField } from "../../parts/field.tsx";
import { Lacking } from "../../parts/lacking.tsx";
import { Empty, Page } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { plural } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { ConnectorCard } from "./connector-card.tsx";
import { type LoadedConnectors, useConnectors } from "./use-connectors.ts";

/** With at least this many connectors, the page has a search field. */
const MANY = 7;

/** All connectors, with the state of each. */
export function Connectors(): JSX.Element {
  const { can } = useSession();
  return (
    <Page
      title="Connectors"
      lead="The sources of tools: MCP servers, and HTTP APIs described by OpenAPI documents. Each offers its tools to the agents and tokens that may use them."
      actions={
        can("connectors:write") && (
          <a class="button button-main" href="/console/connectors/-/new">
            Add a connector
          </a>
        )
      }
    >
      {can("connectors:read") ? (
        <AllConnectors />
      ) : (
        <Lacking scope="connectors:read" what="read connectors" />
      )}
    </Page>
  );
}

function AllConnectors(): JSX.Element {
  const connectors = useConnectors();
  return (
    <>
      <ProblemNote problem={connectors.problem} retry={connectors.reload} />
      {connectors.data === undefined ? (
        !connectors.problem && <Loading />
      ) : (
        <List all={connectors.data} connectors={connectors} />
      )}
    </>
  );
}

function List({
  all,
  connectors,
}: {
  readonly all: readonly Connector[];
  readonly connectors: LoadedConnectors;
}): JSX.Element {
  const { query, route } = useLocation();
  const find = query.find ?? "";
  const own = all.filter(({ kind }) => kind !== "builtin");
  const builtin = all.filter(({ kind }) => kind === "builtin");
  const shown = find === "" ? own : own.filter((connector) => fits(connector, find.toLowerCase()));
  const troubled = own.filter(({ status }) => status !== "ready").length;
  const tools = own.reduce((sum, connector) => sum + connector.tools.length, 0);

  function card(connector: Connector): JSX.Element {
    return (
      <ConnectorCard
        key={connector.name}
        connector={connector}
        changed={(now) => connectors.change((list) => list.map((one) => (one.name === now.name ? now : one)))}
        removed={() => connectors.change((list) => list.filter(({ name }) => name !== connector.name))}
      />
    );
  }

  return (
    <>
      {own.length === 0 ? (
        <NoneYet />
      ) : (
        <>
          <div class="filters">
            {own.length >= MANY && (
              <TextField
                label="Find"
                type="search"
                placeholder="Name, kind, tool"
                value={find}
                change={(text) => route(addressWith(text), true)}
              />
            )}
            <p class="muted" role="status">
              {plural(own.length, "connector")} with {plural(tools, "tool")}
              {troubled > 0 && `, ${troubled} not ready`}
              {find !== "" && `; ${shown.length} found`}
            </p>
          </div>
          <div class="grid connector-grid">{shown.map(card)}</div>
        </>
      )}
      <div class="grid connector-grid">{builtin.map(card)}</div>
    </>
  );
}

function NoneYet(): JSX.Element {
  const { can } = useSession();
  return (
    <Empty
      title="No connectors have been added yet"
      action={
        can("connectors:write") ? (
          <a class="button" href="/console/connectors/-/new?kind=paste">
            Paste mcpServers JSON
          </a>
        ) : (
          <span class="muted">To add one, you need the scope connectors:write.</span>
        )
      }
    >
      Agents already have the built-in tools below. Add an MCP server that runs as a program here or answers
      over HTTP, or an HTTP API by its OpenAPI document; a configuration of Claude, Cursor or VS Code can be
      pasted unchanged.
    </Empty>
  );
}

function addressWith(find: string): string {
  return find === "" ? "/console/connectors" : `/console/connectors?find=${encodeURIComponent(find)}`;
}

function fits({ name, kind, status, tools }: Connector, find: string): boolean {
  if (`${name} ${kind} ${status}`.includes(find)) return true;
  return tools.some((tool) => tool.name.toLowerCase().includes(find));
}

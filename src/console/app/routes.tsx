import type { JSX } from "preact";
import { ErrorBoundary, Route, Router } from "preact-iso";
import { Empty, Page } from "../parts/page.tsx";
import {
  AgentList,
  AgentNew,
  AgentPage,
  Approvals,
  ConnectorNew,
  ConnectorPage,
  Connectors,
  DocumentPage,
  EntryPage,
  Ledger,
  Overview,
  Settings,
  TaskList,
  TaskPage,
  Vault,
} from "./pages.ts";

/** Maps addresses to pages. */
export function Routes({ opened }: { readonly opened: () => void }): JSX.Element {
  return (
    <ErrorBoundary>
      <Router onRouteChange={opened}>
        <Route path="/console" component={Overview} />
        <Route path="/console/tasks" component={TaskList} />
        <Route path="/console/tasks/:id" component={TaskPage} />
        <Route path="/console/agents" component={AgentList} />
        <Route path="/console/agents/-/new" component={AgentNew} />
        <Route path="/console/agents/:name" component={AgentPage} />
        <Route path="/console/approvals" component={Approvals} />
        {/* The same component at both addresses, so the list stays mounted while the user moves through it. */}
        <Route path="/console/approvals/:task/:call" component={Approvals} />
        <Route path="/console/vault" component={Vault} />
        <Route path="/console/vault/documents/:id" component={DocumentPage} />
        <Route path="/console/connectors" component={Connectors} />
        <Route path="/console/connectors/-/new" component={ConnectorNew} />
        <Route path="/console/connectors/:name" component={ConnectorPage} />
        <Route path="/console/ledger" component={Ledger} />
        <Route path="/console/ledger/:seq" component={EntryPage} />
        <Route path="/console/settings" component={Settings} />
        <Route path="/console/settings/:section" component={Settings} />
        <Route default component={NothingHere} />
      </Router>
    </ErrorBoundary>
  );
}

function NothingHere(): JSX.Element {
  return (
    <Page title="Nothing here">
      <Empty
        title="There is no page at this address"
        action={
          <a class="button" href="/console">
            Go to the overview
          </a>
        }
      >
        The address may be mistyped, or the page's content has been removed.
      </Empty>
    </Page>
  );
}

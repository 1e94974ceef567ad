import type { JSX } from "preact";
import { useLocation, useRoute } from "preact-iso";
import type { Connector } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Lacking } from "../../parts/lacking.tsx";
import { Card, Empty, Page } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import { ConnectorActions } from "./connector-actions.tsx";
import { ConnectorError, ConnectorFacts, kindText } from "./connector-facts.tsx";
import { Tools } from "./tools.tsx";
import { useConnectors } from "./use-connectors.ts";

/** A connector: its state, its tools, and a form to try them. */
export function ConnectorPage(): JSX.Element {
  const { can } = useSession();
  const { params } = useRoute();
  const name = params.name ?? "";
  return (
    <Page title={name} lead={<a href="/console/connectors">All connectors</a>}>
      {can("connectors:read") ? (
        <OneConnector name={name} />
      ) : (
        <Lacking scope="connectors:read" what="read connectors" />
      )}
    </Page>
  );
}

function OneConnector({ name }: { readonly name: string }): JSX.Element {
  const connectors = useConnectors();
  const connector = connectors.data?.find((one) => one.name === name);
  return (
    <>
      <ProblemNote problem={connectors.problem} retry={connectors.reload} />
      {connectors.data === undefined && !connectors.problem && <Loading />}
      {connectors.data !== undefined &&
        (connector ? (
          <Present
            key={name}
            connector={connector}
            changed={(now) =>
              connectors.change((list) => list.map((one) => (one.name === now.name ? now : one)))
            }
          />
        ) : (
          <Empty
            title="There is no connector with this name"
            action={
              <a class="button" href="/console/connectors">
                Show all connectors
              </a>
            }
          >
            It was removed or never added.
          </Empty>
        ))}
    </>
  );
}

function Present({
  connector,
  changed,
}: {
  readonly connector: Connector;
  readonly changed: (connector: Connector) => void;
}): JSX.Element {
  const { route } = useLocation();
  const { kind, status } = connector;
  return (
    <>
      <Card
        title={kindText(kind)}
        actions={
          <span class="row" role="status">
            <Status status={status} />
          </span>
        }
      >
        <ConnectorError connector={connector} />
        <ConnectorFacts connector={connector} />
        {kind === "builtin" && (
          <p class="muted">It is part of Gatehouse and cannot be refreshed or removed.</p>
        )}
        <ConnectorActions
          connector={connector}
          changed={changed}
          removed={() => route("/console/connectors")}
        />
      </Card>
      <Tools connector={connector} />
    </>
  );
}

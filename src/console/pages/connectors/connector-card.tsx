import type { JSX } from "preact";
import type { Connector } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { ConnectorActions } from "./connector-actions.tsx";
import { ConnectorError, ConnectorFacts, kindText } from "./connector-facts.tsx";

/** A connector in the overview. */
export function ConnectorCard({
  connector,
  changed,
  removed,
}: {
  readonly connector: Connector;
  readonly changed: (connector: Connector) => void;
  readonly removed: () => void;
}): JSX.Element {
  const { name, kind, status } = connector;
  return (
    <section class="card" aria-label={`Connector ${name}`}>
      <div class="card-head">
        <div>
          <h2>
            <a href={`/console/connectors/${encodeURIComponent(name)}`}>{name}</a>
          </h2>
          <span class="muted small">{kindText(kind)}</span>
        </div>
        <Status status={status} />
      </div>
      <ConnectorError connector={connector} />
      <ConnectorFacts connector={connector} />
      <ConnectorActions connector={connector} changed={changed} removed={removed} />
    </section>
  );
}

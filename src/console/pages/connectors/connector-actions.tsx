import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Connector } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { plural } from "../../parts/text.tsx";
import { notify } from "../../parts/toast.tsx";
import { useSession } from "../../state/session.tsx";
import { useAction } from "../../state/use-action.ts";

/** Refresh and remove, for readers who may. Built-in connectors have neither. */
export function ConnectorActions({
  connector: { name, kind, tools },
  changed,
  removed,
}: {
  readonly connector: Connector;
  readonly changed: (connector: Connector) => void;
  readonly removed: () => void;
}): JSX.Element | null {
  const { can } = useSession();
  const refresh = useAction();
  const removal = useAction();
  const [isAsked, setAsked] = useState(false);
  if (kind === "builtin") return null;
  if (!can("connectors:write")) {
    return <p class="muted small">To refresh or remove it, you need the scope connectors:write.</p>;
  }

  async function ask(): Promise<void> {
    await refresh.run(async () => {
      const now = await call("POST /v1/connectors/:name/refresh", { params: { name } });
      changed(now);
      if (now.status === "ready") notify(`${name} answered with ${plural(now.tools.length, "tool")}.`);
      else notify(`${name} could not be reached.`, { isBad: true });
    });
  }

  return (
    <>
      <div class="row">
        <button
          type="button"
          class="button-small"
          disabled={refresh.isBusy}
          aria-label={`Refresh ${name}`}
          onClick={() => void ask()}
        >
          {refresh.isBusy ? "Asking …" : "Refresh"}
        </button>
        <button
          type="button"
          class="button-small"
          aria-label={`Remove ${name}`}
          onClick={() => setAsked(true)}
        >
          Remove
        </button>
      </div>
      <ProblemNote problem={refresh.problem} />
      {isAsked && (
        <Confirm
          title={`Remove ${name}?`}
          confirm="Remove the connector"
          action={removal}
          close={() => setAsked(false)}
          work={async () => {
            await call("DELETE /v1/connectors/:name", { params: { name } });
            notify(`${name} has been removed.`);
            removed();
          }}
        >
          <p>
            {tools.length === 0
              ? "It has no tools at present."
              : `Its ${plural(tools.length, "tool")} can no longer be called, and calls in progress fail.`}
          </p>
          <p class="muted">
            Its credentials are deleted: to add it again, you have to enter them again. The record of its
            calls stays in the ledger.
          </p>
        </Confirm>
      )}
    </>
  );
}

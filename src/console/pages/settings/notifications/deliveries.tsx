import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Delivery } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { Status } from "../../../parts/badge.tsx";
import { Card } from "../../../parts/page.tsx";
import { Loading, ProblemNote } from "../../../parts/problem.tsx";
import { Time } from "../../../parts/text.tsx";
import { notify } from "../../../parts/toast.tsx";
import { useAction } from "../../../state/use-action.ts";
import { usePages } from "../../../state/use-pages.ts";

const PAGE_SIZE = 50;

/** Webhook deliveries, sent and pending. There are no events for them, so a button reads them again. */
export function Deliveries({ isConfigured }: { readonly isConfigured: boolean }): JSX.Element | null {
  const deliveries = usePages<Delivery>("deliveries", (cursor, signal) =>
    call("GET /v1/webhooks/deliveries", {
      query: { limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) },
      signal,
    }),
  );
  const { items, isWhole, isLoading, problem, reload } = deliveries;
  // Deliveries of a webhook that has been removed are still shown.
  if (!isConfigured && items.length === 0) return null;
  return (
    <Card
      title="Deliveries"
      actions={
        <button type="button" class="button-small" disabled={isLoading} onClick={reload}>
          Read again
        </button>
      }
    >
      <ProblemNote problem={problem} retry={reload} />
      {items.length === 0 && isLoading && <Loading />}
      {items.length === 0 && isWhole && <p class="muted">Nothing has been posted yet.</p>}
      {items.length > 0 && (
        <DeliveryTable
          items={items}
          changed={(changed) =>
            deliveries.change((all) => all.map((item) => (item.id === changed.id ? changed : item)))
          }
        />
      )}
      {!isWhole && items.length > 0 && (
        <div>
          <button type="button" disabled={isLoading} onClick={deliveries.more}>
            Show older deliveries
          </button>
        </div>
      )}
    </Card>
  );
}

function DeliveryTable({
  items,
  changed,
}: {
  readonly items: readonly Delivery[];
  readonly changed: (delivery: Delivery) => void;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1).
    <section class="table-frame" tabIndex={0} aria-label="Deliveries">
      <table>
        <thead>
          <tr>
            <th scope="col">Notice</th>
            <th scope="col">Status</th>
            <th scope="col">Created</th>
            <th scope="col" class="end">
              Attempts
            </th>
            <th scope="col">Last response</th>
            <th scope="col">Next attempt</th>
            <th scope="col">
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((delivery) => (
            <DeliveryRow key={delivery.id} of={delivery} changed={changed} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function DeliveryRow({
  of,
  changed,
}: {
  readonly of: Delivery;
  readonly changed: (delivery: Delivery) => void;
}): JSX.Element {
  const action = useAction();
  const [wasAsked, setAsked] = useState(false);

  async function redeliver(): Promise<void> {
    const answer = await action.run(() =>
      call("POST /v1/webhooks/deliveries/:id/redeliver", { params: { id: of.id } }),
    );
    if (!answer) return;
    changed(answer);
    setAsked(true);
    notify(`${of.type} will be posted again.`);
  }

  return (
    <tr>
      <th scope="row" class="mono" title={of.id}>
        {of.type}
      </th>
      <td>
        <Status status={of.status} />
      </td>
      <td>
        <Time at={of.created_at} />
      </td>
      <td class="end number">{of.attempts}</td>
      <td class="settings-answer">
        <span class="break">{of.last_error ?? of.last_status}</span>
        {of.last_attempt_at !== null && (
          <div class="small muted">
            <Time at={of.last_attempt_at} />
          </div>
        )}
        <ProblemNote problem={action.problem} />
      </td>
      <td>
        <Time at={of.next_at} />
      </td>
      <td class="end">
        <button
          type="button"
          class="button-small"
          disabled={action.isBusy || (wasAsked && of.status === "pending")}
          onClick={() => void redeliver()}
        >
          Post again<span class="unseen">: {of.type}</span>
        </button>
      </td>
    </tr>
  );
}

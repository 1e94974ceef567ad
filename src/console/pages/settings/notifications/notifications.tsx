import type { JSX } from "preact";
import type { Webhook } from "../../../../http/api.ts";
import { Code } from "../../../parts/code.tsx";
import { Card, Facts } from "../../../parts/page.tsx";
import { Show } from "../../../parts/problem.tsx";
import { useSession } from "../../../state/session.tsx";
import { useData } from "../../../state/use-data.ts";
import { Deliveries } from "./deliveries.tsx";
import { Notices } from "./notices.tsx";

const YAML = `notify:
  webhook: "https://ops.example.org/hook"`;

/** What each event type means. */
const EVENTS: Readonly<Record<string, string>> = {
  "task.finished": "A task has ended",
  "approval.required": "A call is waiting for approval",
  "limit.exceeded": "A limit was exceeded, or a budget has been spent",
  "budget.warning": "A budget is nearly spent",
  "ledger.checkpoint": "The ledger's head was signed, to be kept elsewhere",
};

/** The operator's notifications and their webhook. */
export function Notifications(): JSX.Element {
  const { can } = useSession();
  const webhook = useData("GET /v1/webhooks", {});
  return (
    <>
      <Show of={webhook}>{(read) => <WebhookCard webhook={read} />}</Show>
      {can("ledger:read") && <Notices />}
      {webhook.data && <Deliveries isConfigured={webhook.data.configured} />}
    </>
  );
}

function WebhookCard({ webhook: { configured, url, events } }: { readonly webhook: Webhook }): JSX.Element {
  if (!configured) {
    return (
      <Card title="Webhook">
        <p>
          No webhook is configured. Give the server a URL, and it posts a notice when a call waits for
          approval, a task ends or a limit is exceeded. In <code>gatehouse.yaml</code>:
        </p>
        <Code label="gatehouse.yaml" text={YAML} />
        <p class="muted small">
          Or the variable <code>GATEHOUSE_NOTIFY_WEBHOOK</code>; then restart the server. Posts are signed as{" "}
          <a href="https://www.standardwebhooks.com/" rel="noreferrer" target="_blank">
            Standard Webhooks
          </a>{" "}
          specifies, with the secret in <code>webhook.key</code> in the data directory.
        </p>
      </Card>
    );
  }
  return (
    <Card title="Webhook">
      <Facts
        of={[
          ["Posts to", <code key="url">{url}</code>],
          [
            "Events",
            <ul key="events" class="settings-plain">
              {events.map((event) => (
                <li key={event}>
                  <code>{event}</code> <span class="muted">{EVENTS[event]}</span>
                </li>
              ))}
            </ul>,
          ],
        ]}
      />
      <p class="muted small">
        Set by <code>notify.webhook</code> in <code>gatehouse.yaml</code>. Only the URL's origin is shown,
        since the rest may be a secret. Receivers check the signature with the secret in{" "}
        <code>webhook.key</code> in the data directory.
      </p>
    </Card>
  );
}

import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { Show } from "../../parts/problem.tsx";
import { Time } from "../../parts/text.tsx";
import { useData } from "../../state/use-data.ts";

const SHOWN = 5;

/** The latest decisions. */
export function Decisions(): JSX.Element {
  const decided = useData("GET /v1/approvals", { query: { status: "decided", limit: SHOWN } }, [
    "approval.changed",
  ]);
  return (
    <Card title="Recent decisions" actions={<a href="/console/approvals">All approvals</a>}>
      <Show of={decided}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="muted">
              No decisions yet. A call waits for approval if the agent's approvals match its tool, or if the
              tool is marked as destructive.
            </p>
          ) : (
            <ul class="matters">
              {data.map((approval) => (
                <Row key={`${approval.task} ${approval.call_id}`} approval={approval} />
              ))}
            </ul>
          )
        }
      </Show>
    </Card>
  );
}

function Row({ approval }: { readonly approval: Approval }): JSX.Element {
  const { task, call_id, agent, tool, status, decided_by, decided_at, reason } = approval;
  return (
    <li class="matter">
      <Status status={status} />
      <div class="stack-small grow">
        <a class="break" href={`/console/approvals/${task}/${call_id}`}>
          {tool} for {agent}
        </a>
        <span class="muted small break">
          {decided_by === null ? "Nobody decided in time" : decided_by} <Time at={decided_at} />
        </span>
        {reason !== null && <q class="small decision-reason">{reason}</q>}
      </div>
    </li>
  );
}

import type { JSX } from "preact";
import type { Agent, Approval } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Card, Facts } from "../../parts/page.tsx";
import { Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import type { Loaded } from "../../state/use-data.ts";
import { VotesText } from "./votes.tsx";

/** The asking agent, its rights, and whose approval is needed. */
export function AskerFacts({
  approval,
  agent: { data: agent, problem },
}: {
  readonly approval: Approval;
  readonly agent: Loaded<Agent>;
}): JSX.Element {
  const { can } = useSession();
  const mayRead = can("agents:read");
  return (
    <Card title="Who is asking">
      <Facts
        of={[
          [
            "Agent",
            mayRead ? (
              <span class="row" key="agent">
                <a href={`/console/agents/${encodeURIComponent(approval.agent)}`}>{approval.agent}</a>
                {agent && <Status status={agent.status} />}
              </span>
            ) : (
              approval.agent
            ),
          ],
          agent ? ["Owner", agent.owner] : null,
          agent
            ? [
                "Memory",
                <span class="row" key="memory">
                  {agent.memory_scope.map((path) => (
                    <span class="chip" key={path}>
                      {path}
                    </span>
                  ))}
                </span>,
              ]
            : null,
          ["Requested", <Time key="asked" at={approval.presented_at} />],
          ["Decide by", <Time key="until" at={approval.expires_at} />],
          ["Approvals", <VotesText key="votes" approval={approval} />],
        ]}
      />
      {!mayRead && <p class="muted small">To see more about the agent, you need the scope agents:read.</p>}
      {mayRead && !agent && problem && (
        <p class="muted small">The agent could not be read: {problem.message}</p>
      )}
    </Card>
  );
}

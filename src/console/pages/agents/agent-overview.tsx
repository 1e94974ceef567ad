import type { ComponentChildren, JSX } from "preact";
import type { Agent } from "../../../http/api.ts";
import { Code } from "../../parts/code.tsx";
import { Card, Facts } from "../../parts/page.tsx";
import { countText, creditsText, Time } from "../../parts/text.tsx";
import { useWorkspaceStatus } from "../../state/usage.ts";
import { RecentCalls } from "../calls/recent-calls.tsx";
import { Chips } from "./chips.tsx";
import { PolicySection } from "./policy-section.tsx";
import { RecentTasks } from "./recent-tasks.tsx";
import { ToolSection } from "./tool-section.tsx";

/** An agent's settings and their effects. */
export function AgentOverview({ agent }: { readonly agent: Agent }): JSX.Element {
  const { models, tiers } = agent.tier_policy;
  const workspace = useWorkspaceStatus();
  return (
    <div class="agent-overview">
      <Card title="Facts">
        <Facts
          of={[
            agent.description === null ? null : ["Description", agent.description],
            ["Owner", agent.owner],
            ["Memory scope", <Chips key="scope" of={agent.memory_scope} none="None" />],
            ["Steps of a task", <span class="number">{countText(agent.max_steps)} at most</span>],
            ["Budget", budgetText(agent)],
            ["Version", <span class="number">{agent.version}</span>],
            ["Created", <Time at={agent.created_at} whole />],
            ["Changed", <Time at={agent.updated_at} whole />],
            workspace === "stopped"
              ? ["Status", "Stopped with the whole workspace; resume the workspace first"]
              : null,
          ]}
        />
      </Card>
      <RecentTasks agent={agent.name} />
      <div class="agent-whole">
        <RecentCalls agent={agent.name} />
      </div>
      <div class="agent-whole">
        <Card title="Tiers and models">
          <Facts
            of={[
              ["Allowed", <Chips key="allow" of={models.allow} none="No model" />],
              ["Denied", <Chips key="deny" of={models.deny} none="Nothing" />],
            ]}
          />
          <PolicySection policy={{ tiers, ...models }} />
        </Card>
      </div>
      <Card title="Tools and approvals">
        <Facts
          of={[
            ["Tools", <Chips key="tools" of={agent.tools} none="No tool" />],
            ["Approval for", approvalsText(agent)],
            [
              "By",
              agent.approvals_required === 1 ? "One person" : `${agent.approvals_required} different people`,
            ],
          ]}
        />
        <ToolSection policy={agent} />
      </Card>
      <Card title="Instructions">
        {agent.instructions === null ? (
          <p class="muted">None: the model is given only the task's prompt.</p>
        ) : (
          <Code text={agent.instructions} label="Instructions" />
        )}
      </Card>
    </div>
  );
}

function budgetText({ budget: { credits_per_day: credits } }: Pick<Agent, "budget">): string {
  return credits === null ? "None" : `${creditsText(credits)} credits a day`;
}

function approvalsText({ approvals }: Agent): ComponentChildren {
  if (approvals === null) return "Every destructive tool";
  return <Chips of={approvals} none="No tool" />;
}

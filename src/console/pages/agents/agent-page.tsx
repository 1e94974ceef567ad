import type { JSX } from "preact";
import { useLocation, useRoute } from "preact-iso";
import type { Agent } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Empty, Page, Tabs } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import { AgentActions } from "./agent-actions.tsx";
import { AgentEdit } from "./agent-edit.tsx";
import { AgentOverview } from "./agent-overview.tsx";
import { Lacking, useMayChange } from "./rights.tsx";
import { type LiveAgent, useAgent } from "./use-agent.ts";

/** One agent: an overview, and a tab for changing it. */
export function AgentPage(): JSX.Element {
  const { name = "" } = useRoute().params;
  const { can } = useSession();
  if (!can("agents:read")) {
    return (
      <Page title={name}>
        <Lacking scope="agents:read" what="read agents" />
      </Page>
    );
  }
  // Keyed, so input for one agent is never shown for another.
  return <LoadedAgent key={name} name={name} />;
}

function LoadedAgent({ name }: { readonly name: string }): JSX.Element {
  const live = useAgent(name);
  const { data: agent, problem, reload } = live;
  if (agent === undefined) {
    return (
      <Page title={name}>
        {problem?.code === "agent_not_found" ? (
          <Unknown name={name} />
        ) : (
          <ProblemNote problem={problem} retry={reload} />
        )}
        {problem === null && <Loading />}
      </Page>
    );
  }
  return (
    <Page title={agent.name} actions={<Links agent={agent} live={live} />}>
      {live.isArchived ? (
        <div class="problem" role="alert">
          <strong>This agent has been archived.</strong>
          <span>Its tasks have ended and it can no longer be changed. Its history stays in the ledger.</span>
        </div>
      ) : (
        <ProblemNote problem={problem} retry={reload} />
      )}
      <Sections agent={agent} live={live} />
    </Page>
  );
}

function Sections({ agent, live }: { readonly agent: Agent; readonly live: LiveAgent }): JSX.Element {
  const { query } = useLocation();
  const mayChange = useMayChange();
  const address = `/console/agents/${agent.name}`;
  const isEditing = query.tab === "edit" && mayChange;
  return (
    <>
      {mayChange && (
        <Tabs
          label={`Agent ${agent.name}`}
          of={[
            [address, "Overview"],
            [`${address}?tab=edit`, "Edit"],
          ]}
          current={isEditing ? `${address}?tab=edit` : address}
        />
      )}
      {query.tab === "edit" && !mayChange && <Lacking scope="agents:write" what="change agents" />}
      {isEditing ? (
        <AgentEdit agent={agent} isArchived={live.isArchived} saved={(saved) => live.change(() => saved)} />
      ) : (
        <AgentOverview agent={agent} />
      )}
    </>
  );
}

function Links({ agent, live }: { readonly agent: Agent; readonly live: LiveAgent }): JSX.Element {
  const { session, can } = useSession();
  const mayRun = can("tasks:write") && (session.agent === null || session.agent === agent.name);
  const links: readonly (readonly [boolean, string, string])[] = [
    [
      mayRun && agent.status === "active" && !live.isArchived,
      `/console/tasks?new=${agent.name}`,
      "Run a task",
    ],
    [
      can("vault:read") && !live.isArchived,
      `/console/vault?agent=${agent.name}`,
      "Search the vault as this agent",
    ],
    [can("ledger:read"), `/console/ledger?agent=${agent.name}`, "Its ledger"],
  ];
  return (
    <>
      <Status status={live.isArchived ? "archived" : agent.status} />
      {links.map(
        ([isShown, href, text]) =>
          isShown && (
            <a key={href} class="button" href={href}>
              {text}
            </a>
          ),
      )}
      {!live.isArchived && <AgentActions agent={agent} changed={(changed) => live.change(() => changed)} />}
    </>
  );
}

function Unknown({ name }: { readonly name: string }): JSX.Element {
  const { can } = useSession();
  return (
    <Empty
      title="There is no agent with this name"
      action={
        <div class="row">
          <a class="button" href="/console/agents">
            All agents
          </a>
          {can("ledger:read") && (
            <a class="button" href={`/console/ledger?${new URLSearchParams({ agent: name })}`}>
              Its ledger
            </a>
          )}
        </div>
      }
    >
      It was never created, or it has been archived. An archived agent's history stays in the ledger.
    </Empty>
  );
}

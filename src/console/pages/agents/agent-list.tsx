import type { JSX } from "preact";
import { useLocation } from "preact-iso";
import type { Agent } from "../../../http/api.ts";
import { TextField } from "../../parts/field.tsx";
import { Empty, Page } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { countText, plural } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { AgentTable } from "./agent-table.tsx";
import { Lacking, useMayChange } from "./rights.tsx";
import { useAgents } from "./use-agents.ts";

export function AgentList(): JSX.Element {
  const { can } = useSession();
  const mayChange = useMayChange();
  return (
    <Page
      title="Agents"
      lead="Each agent has an owner, sees part of the vault, and may use the tiers, models and tools that its policy names."
      actions={
        mayChange && (
          <a class="button button-main" href="/console/agents/-/new">
            Create an agent
          </a>
        )
      }
    >
      {can("agents:read") ? <Agents /> : <Lacking scope="agents:read" what="read agents" />}
    </Page>
  );
}

function Agents(): JSX.Element {
  const { items, problem, isLoading, isWhole, reload } = useAgents();
  const { path, query, route } = useLocation();
  const search = query.q ?? "";
  const found = items.filter((agent) => matches(agent, search));

  function searchFor(text: string): void {
    route(text === "" ? path : `${path}?${new URLSearchParams({ q: text })}`, true);
  }

  if (items.length === 0) {
    return (
      <>
        <ProblemNote problem={problem} retry={reload} />
        {problem === null && (isLoading || !isWhole ? <Loading /> : <NoAgents />)}
      </>
    );
  }
  return (
    <div class="stack">
      <ProblemNote problem={problem} retry={reload} />
      <search class="filters">
        <TextField label="Name or owner" type="search" value={search} change={searchFor} />
        <p class="agent-count muted" role="status">
          {search === ""
            ? plural(items.length, "agent")
            : `${countText(found.length)} of ${plural(items.length, "agent")}`}
        </p>
      </search>
      {found.length > 0 ? (
        <AgentTable agents={found} />
      ) : (
        <Empty
          title="No agent matches"
          action={
            <button type="button" onClick={() => searchFor("")}>
              Show all agents
            </button>
          }
        >
          No name or owner contains your search text.
        </Empty>
      )}
    </div>
  );
}

/** Whether every search word occurs in the name or the owner. */
function matches({ name, owner }: Agent, search: string): boolean {
  const text = `${name} ${owner}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function NoAgents(): JSX.Element {
  const mayChange = useMayChange();
  return (
    <Empty
      title="There are no agents yet"
      action={
        mayChange ? (
          <a class="button button-main" href="/console/agents/-/new">
            Create an agent
          </a>
        ) : undefined
      }
    >
      An agent is a named worker with an accountable owner. It sees part of the vault, may use certain models
      and tools, and asks a person when you want it to. Programs give it tasks, and everything it does is
      recorded in the ledger.
      {mayChange ? "" : " To create one, you need a token with the scope agents:write."}
    </Empty>
  );
}

import type { JSX } from "preact";
import type { Agent } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { creditsText, Time } from "../../parts/text.tsx";
import { Chips } from "./chips.tsx";

/** How many entries of a list a cell shows. The rest are counted. */
const SHOWN = 2;
const COLUMNS = [
  "Agent",
  "Owner",
  "Status",
  "Memory scope",
  "Tiers",
  "Tools",
  "Credits a day",
  "Version",
  "Changed",
];

/** Agents as rows. On a narrow page each is a card whose cells are labelled. */
export function AgentTable({ agents }: { readonly agents: readonly Agent[] }): JSX.Element {
  return (
    <div class="table-frame agent-table">
      <table>
        <caption class="unseen">Agents by name</caption>
        <thead>
          <tr>
            {COLUMNS.map((column) => (
              <th key={column} scope="col" class={isNumber(column) ? "end" : undefined}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {agents.map((agent) => (
            <AgentRow key={agent.name} agent={agent} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function isNumber(column: string): boolean {
  return column === "Credits a day" || column === "Version";
}

function AgentRow({ agent }: { readonly agent: Agent }): JSX.Element {
  const { credits_per_day: credits } = agent.budget;
  return (
    <tr>
      <th scope="row">
        <a href={`/console/agents/${agent.name}`}>{agent.name}</a>
        {agent.description !== null && <span class="agent-about muted small">{agent.description}</span>}
      </th>
      <td data-label="Owner">
        <span class="agent-owner" title={agent.owner}>
          {agent.owner}
        </span>
      </td>
      <td data-label="Status">
        <Status status={agent.status} />
      </td>
      <td data-label="Memory scope">
        <Few of={agent.memory_scope} />
      </td>
      <td data-label="Tiers" class="number">
        {agent.tier_policy.tiers.length === 0 ? "none" : agent.tier_policy.tiers.join(", ")}
      </td>
      <td data-label="Tools">
        <Few of={agent.tools} />
      </td>
      <td data-label="Credits a day" class="number end">
        {credits === null ? <span class="muted">no budget</span> : creditsText(credits)}
      </td>
      <td data-label="Version" class="number end">
        {agent.version}
      </td>
      <td data-label="Changed" class="nowrap">
        <Time at={agent.updated_at} />
      </td>
    </tr>
  );
}

function Few({ of }: { readonly of: readonly string[] }): JSX.Element {
  const rest = of.length - SHOWN;
  return (
    <span class="chips" title={rest > 0 ? of.join(", ") : undefined}>
      <Chips of={of.slice(0, SHOWN)} none="none" />
      {rest > 0 && <span class="muted small">and {rest} more</span>}
    </span>
  );
}

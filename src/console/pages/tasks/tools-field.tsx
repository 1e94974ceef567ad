import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { matchesAny, restrictsTool } from "../../../base/glob.ts";
import type { Agent, Connector } from "../../../http/api.ts";
import { Badge } from "../../parts/badge.tsx";
import { Check, Lines, linesOf, TextField } from "../../parts/field.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import { useConnectors } from "../connectors/use-connectors.ts";

type ToolChoice = Connector["tools"][number];

/** With at least this many tools, the list has a search field. */
const SEARCHED = 12;

interface ToolsProps {
  readonly tools: readonly string[];
  readonly error: string | undefined;
  readonly change: (tools: readonly string[]) => void;
}

/** The tools that the task may call: chosen from the agent's tools, or typed if they cannot be read. */
export function ToolsField({ agent, ...props }: ToolsProps & { readonly agent: Agent | null }): JSX.Element {
  const { session, can } = useSession();
  const mayRead = can("connectors:read");
  const connectors = useConnectors();
  if (!mayRead) return <TypedTools {...props} />;
  const held = session.scopes.filter((scope) => scope.startsWith("tools:")).map((scope) => scope.slice(6));
  const usable = (connectors.data ?? [])
    .flatMap(({ tools }) => tools)
    .filter(({ name }) => agent === null || matchesAny(agent.tools, name))
    .filter(({ name }) => can("admin") || matchesAny(held, name));
  return (
    <fieldset>
      <legend>Tools it may call</legend>
      <ProblemNote problem={connectors.problem} retry={connectors.reload} />
      {connectors.data && usable.length === 0 && (
        <p class="muted small">There are no tools that both this agent and your token may use.</p>
      )}
      <ToolList {...props} agent={agent} usable={usable} />
      {props.error && <span class="error">{props.error}</span>}
    </fieldset>
  );
}

function ToolList({
  tools,
  usable,
  agent,
  change,
}: Omit<ToolsProps, "error"> & {
  readonly usable: readonly ToolChoice[];
  readonly agent: Agent | null;
}): JSX.Element {
  const [search, setSearch] = useState("");
  // Tools of an earlier task that no longer exist are shown, so that they can be removed.
  const gone = tools.filter((name) => !usable.some((tool) => tool.name === name));
  const words = search.trim().toLowerCase();
  const found = usable.filter(
    ({ name, description }) => tools.includes(name) || `${name} ${description}`.toLowerCase().includes(words),
  );
  const toggle = (name: string) => (isChosen: boolean) =>
    change(isChosen ? [...tools, name] : tools.filter((other) => other !== name));
  return (
    <>
      {usable.length > SEARCHED && (
        <TextField label="Find a tool" type="search" value={search} change={setSearch} />
      )}
      <div class="tool-list">
        {gone.map((name) => (
          <Check
            key={name}
            label={<code>{name}</code>}
            hint="It is not among the permitted tools."
            checked
            change={toggle(name)}
          />
        ))}
        {found.map((tool) => (
          <Check
            key={tool.name}
            label={
              <>
                <code>{tool.name}</code>{" "}
                {needsApproval(tool, agent) && <Badge tone="warn" text="needs approval" />}
              </>
            }
            hint={<span class="tool-hint">{tool.description}</span>}
            checked={tools.includes(tool.name)}
            change={toggle(tool.name)}
          />
        ))}
      </div>
    </>
  );
}

/** By the agent's patterns if it has any, otherwise if the connector marks the tool as destructive. */
function needsApproval(tool: ToolChoice, agent: Agent | null): boolean {
  return agent?.approvals ? restrictsTool(agent.approvals, tool.name) : tool.approval;
}

function TypedTools({ tools, error, change }: ToolsProps): JSX.Element {
  const [text, setText] = useState(tools.join("\n"));
  return (
    <Lines
      label="Tools it may call"
      hint="One per line, such as vault.search. Your token may not list the available tools."
      rows={3}
      values={text}
      error={error}
      change={(typed) => {
        setText(typed);
        change(linesOf(typed));
      }}
    />
  );
}

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Approval } from "../../../http/api.ts";
import { Select, TextField } from "../../parts/field.tsx";
import { type ApprovalsView, addressOf, DECISIONS, type DecisionFilter } from "./address.ts";

const NAMES: Readonly<Record<DecisionFilter, string>> = {
  decided: "Any decision",
  approved: "Approved",
  denied: "Denied",
  expired: "Expired: nobody decided",
  withdrawn: "Withdrawn: its task ended",
};

/** Filters for decided approvals. Typed text takes effect on submit, because each list is a call. */
export function Filters({
  view,
  seen,
}: {
  readonly view: ApprovalsView;
  /** Approvals whose agents and tools are offered as suggestions. */
  readonly seen: readonly Approval[];
}): JSX.Element {
  const { route } = useLocation();
  const [agent, setAgent] = useState(view.agent);
  const [tool, setTool] = useState(view.tool);
  useEffect(() => {
    setAgent(view.agent);
    setTool(view.tool);
  }, [view.agent, view.tool]);
  const isFiltered = addressOf(view) !== addressOf({ ...view, agent: "", tool: "", decision: "decided" });
  return (
    <search>
      <form
        class="approval-filters"
        onSubmit={(event) => {
          event.preventDefault();
          route(addressOf({ ...view, agent: agent.trim(), tool: tool.trim() }), true);
        }}
      >
        <Select
          label="Decision"
          value={view.decision}
          options={DECISIONS.map((decision) => [decision, NAMES[decision]] as const)}
          change={(value) => {
            const decision = DECISIONS.find((one) => one === value) ?? "decided";
            route(addressOf({ ...view, agent: agent.trim(), tool: tool.trim(), decision }), true);
          }}
        />
        <TextField
          label="Agent"
          value={agent}
          change={setAgent}
          list={distinct(seen.map((one) => one.agent))}
        />
        <TextField
          label="Tool"
          value={tool}
          change={setTool}
          placeholder="github.merge"
          list={distinct(seen.map((one) => one.tool))}
        />
        <div class="row">
          <button type="submit">Filter</button>
          {isFiltered && (
            <a class="button" href={addressOf({ ...view, agent: "", tool: "", decision: "decided" })}>
              Show all
            </a>
          )}
        </div>
      </form>
    </search>
  );
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { Lines, linesOf, Select } from "../../parts/field.tsx";
import { Card } from "../../parts/page.tsx";
import { type AgentDraft, approvalsOf } from "./draft.ts";
import { errorAt, errorInList } from "./field-errors.ts";
import type { FormPart } from "./form-part.ts";
import { ToolSection } from "./tool-section.tsx";

/** The tools that the agent may call, those that need approval, and the effect on existing tools. */
export function ToolFields({ draft, change, problem }: FormPart): JSX.Element {
  return (
    <Card title="Tools and approvals">
      <div class="agent-split">
        <div class="stack">
          <Lines
            label="Tools"
            rows={4}
            values={draft.tools}
            change={(tools) => change({ tools })}
            hint="Patterns of tools it may call, one per line, such as vault.search or github.*. Each task still names the tools it uses."
            error={errorInList(problem, "/tools", draft.tools)}
          />
          <ApprovalChoice draft={draft} change={change} />
          {draft.approvalsBy === "patterns" && (
            <Lines
              label="Tools that need approval"
              rows={3}
              values={draft.approvals}
              change={(approvals) => change({ approvals })}
              hint="Patterns, one per line. Without any, no call needs approval."
              error={errorInList(problem, "/approvals", draft.approvals)}
            />
          )}
          <Select
            label="Approvals required"
            value={draft.approvalsRequired}
            change={(approvalsRequired) => change({ approvalsRequired })}
            options={[
              ["1", "One person"],
              ["2", "Two different people"],
            ]}
            error={errorAt(problem, "/approvals_required")}
          />
        </div>
        <ToolSection policy={{ tools: linesOf(draft.tools), approvals: approvalsOf(draft) }} />
      </div>
    </Card>
  );
}

const CHOICES: readonly (readonly [AgentDraft["approvalsBy"], string])[] = [
  ["destructive", "Tools that their connector marks as destructive"],
  ["patterns", "Tools that match these patterns"],
];

function ApprovalChoice({ draft, change }: Pick<FormPart, "draft" | "change">): JSX.Element {
  const name = useId();
  return (
    <fieldset>
      <legend>What needs approval</legend>
      {CHOICES.map(([choice, text]) => (
        <label key={choice} class="check">
          <input
            type="radio"
            name={name}
            checked={draft.approvalsBy === choice}
            onChange={() => change({ approvalsBy: choice })}
          />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

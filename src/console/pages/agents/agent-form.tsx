import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { IdentityFields, InstructionFields } from "./form-identity.tsx";
import { LimitFields } from "./form-limits.tsx";
import type { FormPart } from "./form-part.ts";
import { PolicyFields } from "./form-policy.tsx";
import { FormProblem } from "./form-problem.tsx";
import { ToolFields } from "./form-tools.tsx";

/** Every field of an agent, to create it (`isNew`) or to change it. What was typed stays when it is refused. */
export function AgentForm({
  isNew,
  save,
  actions,
  notes,
  ...part
}: FormPart & {
  readonly isNew: boolean;
  readonly save: () => void;
  /** The buttons, one of which submits, and how it stands. */
  readonly actions: ComponentChildren;
  /** What is to be known before it is saved. */
  readonly notes?: ComponentChildren;
}): JSX.Element {
  const form = useRef<HTMLFormElement>(null);
  const { problem } = part;
  useEffect(() => {
    if (problem === null) return;
    const invalid = form.current?.querySelector('[aria-invalid="true"]');
    if (invalid instanceof HTMLElement) invalid.focus();
  }, [problem]);
  return (
    <form
      ref={form}
      class="agent-form"
      aria-label={isNew ? "New agent" : `Agent ${part.draft.name}`}
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <IdentityFields {...part} isNew={isNew} />
      <InstructionFields {...part} />
      <PolicyFields {...part} />
      <ToolFields {...part} />
      <LimitFields {...part} />
      <div class="agent-save">
        {notes}
        <FormProblem problem={problem} />
        <div class="row">{actions}</div>
      </div>
    </form>
  );
}

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { IdentityFields, InstructionFields } from "./form-identity.tsx";
import { LimitFields } from "./form-limits.tsx";
import type { FormPart } from "./form-part.ts";
import { PolicyFields } from "./form-policy.tsx";
import { FormProblem } from "./form-problem.tsx";
import { ToolFields } from "./form-tools.tsx";

/** The form for creating (`isNew`) or changing an agent. Keeps the input if the server refuses it. */
export function AgentForm({
  isNew,
  save,
  actions,
  notes,
  ...part
}: FormPart & {
  readonly isNew: boolean;
  readonly save: () => void;
  /** The submit button and the state of saving. */
  readonly actions: ComponentChildren;
  /** Shown above the buttons, before saving. */
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

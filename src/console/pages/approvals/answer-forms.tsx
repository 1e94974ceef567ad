import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { TextArea, TextField } from "../../parts/field.tsx";
import type { Action } from "../../state/use-action.ts";
import type { DecisionBody } from "./decide.tsx";

export interface FormParts {
  readonly action: Action;
  readonly reason: string;
  readonly setReason: (reason: string) => void;
  readonly leave: () => void;
  readonly send: (decision: DecisionBody) => Promise<void>;
}

/** The second step of a decision. Escape leaves it; Ctrl+Enter submits it from any field. */
export function DecisionForm({
  label,
  leave,
  submit,
  children,
}: {
  readonly label: string;
  readonly leave: () => void;
  readonly submit: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <form
      class="stack-small"
      aria-label={label}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.preventDefault();
          leave();
        } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          if (!event.repeat) event.currentTarget.requestSubmit();
        } else if (event.key === "Enter" && event.repeat && !(event.target instanceof HTMLTextAreaElement)) {
          // Ignore the repeats of the key that opened this form.
          event.preventDefault();
        }
      }}
    >
      {children}
    </form>
  );
}

export function FormEnd({
  leave,
  children,
}: {
  readonly leave: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="row">
      {children}
      <button type="button" onClick={leave}>
        Back
      </button>
    </div>
  );
}

export function ApproveForm({
  tool,
  agent,
  action,
  reason,
  setReason,
  leave,
  send,
}: FormParts & { readonly tool: string; readonly agent: string }): JSX.Element {
  return (
    <DecisionForm label="Approve" leave={leave} submit={() => void send({ decision: "approve", reason })}>
      <p>
        Allow <strong>{agent}</strong> to call <strong>{tool}</strong> with the arguments above?
      </p>
      <TextField
        label="Reason (optional)"
        value={reason}
        change={setReason}
        error={action.problem?.fields.get("/reason")}
      />
      <FormEnd leave={leave}>
        <button type="submit" class="button-main" data-begin disabled={action.isBusy}>
          Approve the call
        </button>
      </FormEnd>
    </DecisionForm>
  );
}

export function DenyForm({
  tool,
  action,
  reason,
  setReason,
  leave,
  send,
}: FormParts & { readonly tool: string }): JSX.Element {
  const [isMissing, setMissing] = useState(false);
  return (
    <DecisionForm
      label="Deny"
      leave={leave}
      submit={() => {
        const isEmpty = reason.trim() === "";
        setMissing(isEmpty);
        if (!isEmpty) void send({ decision: "deny", reason });
      }}
    >
      <TextArea
        label={`Why is ${tool} denied?`}
        rows={2}
        value={reason}
        change={setReason}
        hint="The model is told, and continues without the call. Press Ctrl+Enter to send."
        error={
          isMissing && reason.trim() === ""
            ? "Enter a reason: it is shown to the model and recorded in the ledger."
            : action.problem?.fields.get("/reason")
        }
      />
      <FormEnd leave={leave}>
        <button type="submit" class="button-bad" disabled={action.isBusy}>
          Deny the call
        </button>
      </FormEnd>
    </DecisionForm>
  );
}

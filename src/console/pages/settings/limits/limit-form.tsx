import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Workspace } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { NumberField } from "../../../parts/field.tsx";
import { ProblemNote } from "../../../parts/problem.tsx";
import { notify } from "../../../parts/toast.tsx";
import { Unsaved } from "../../../parts/unsaved.tsx";
import { useSession } from "../../../state/session.tsx";
import { useAction } from "../../../state/use-action.ts";
import { Choice } from "../choice.tsx";
import { changeOf, type LimitDraft, type LimitValues, valuesOf } from "./limit-draft.ts";

const ENFORCEMENT = [
  {
    value: "soft",
    name: "Soft",
    hint: "Requests over a limit are still served, but recorded and reported, at most once a minute.",
  },
  {
    value: "enforced",
    name: "Enforced",
    hint: "Requests over a limit are refused with 429, and tasks wait in the queue until others have ended.",
  },
] as const;

/** Fields show the stored values unless edited, so changes by others appear at once. */
export function LimitForm({
  workspace,
  changed,
}: {
  readonly workspace: Workspace;
  readonly changed: (workspace: Workspace) => void;
}): JSX.Element {
  const { session } = useSession();
  const [draft, setDraft] = useState<LimitDraft>({});
  const action = useAction();
  const stored = valuesOf(workspace);
  const values: LimitValues = { ...stored, ...draft };
  // Compares the text, so invalid numbers count as edits too.
  const isDirty = JSON.stringify(values) !== JSON.stringify(stored);
  const body = changeOf(draft, workspace);
  const isFixed = session.agent !== null;
  const change = (part: LimitDraft) => setDraft((before) => ({ ...before, ...part }));
  const errorAt = (path: string) => action.problem?.fields.get(path);

  async function save(): Promise<void> {
    if (!body) return;
    const answer = await action.run(() => call("PATCH /v1/workspace", { body }));
    if (!answer) return;
    setDraft({});
    changed(answer);
    notify("The limits have been changed.");
  }

  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Unsaved isDirty={isDirty} />
      <div class="form-columns">
        <NumberField
          label="Requests per minute"
          value={values.requests}
          change={(requests) => change({ requests })}
          min={1}
          required
          disabled={isFixed}
          error={errorAt("/limits/requests_per_minute")}
          hint="For all callers together. Streams do not count."
        />
        <NumberField
          label="Concurrent tasks"
          value={values.tasks}
          change={(tasks) => change({ tasks })}
          min={1}
          required
          disabled={isFixed}
          error={errorAt("/limits/concurrent_tasks")}
          hint="Running tasks only, not queued ones."
        />
        <NumberField
          label="Credits per month"
          value={values.credits}
          change={(credits) => change({ credits })}
          min={0}
          step="any"
          disabled={isFixed}
          placeholder="no budget"
          error={errorAt("/budget/credits_per_month")}
          hint="Empty: no budget. Once it is spent, everything that costs credits is refused, even with soft enforcement."
        />
      </div>
      <Choice
        label="Past a limit"
        value={values.enforcement}
        options={ENFORCEMENT}
        change={(enforcement) => change({ enforcement })}
        disabled={isFixed}
      />
      <ProblemNote problem={action.problem} />
      {isFixed ? (
        <p class="muted">Your token acts as {session.agent}: it may see the limits but not change them.</p>
      ) : (
        <div class="row">
          <button type="submit" class="button-main" disabled={action.isBusy || !body}>
            Save changes
          </button>
          <button
            type="button"
            disabled={action.isBusy || !body}
            onClick={() => {
              setDraft({});
              action.clear();
            }}
          >
            Undo changes
          </button>
        </div>
      )}
    </form>
  );
}

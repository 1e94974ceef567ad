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
    hint: "Past a limit everything is still served. It is recorded, counted and told, once a minute at most.",
  },
  {
    value: "enforced",
    name: "Enforced",
    hint: "Past a limit requests are refused with 429, and tasks wait in the queue until others have ended.",
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
  // Compares the texts, so invalid numbers count as edits too.
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
    notify("The limits are changed.");
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
          hint="Of all callers together. Streams do not count."
        />
        <NumberField
          label="Tasks at the same time"
          value={values.tasks}
          change={(tasks) => change({ tasks })}
          min={1}
          required
          disabled={isFixed}
          error={errorAt("/limits/concurrent_tasks")}
          hint="Those that run, not those that wait."
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
          hint="Empty: no budget. When it is spent, what costs credits is refused, soft or not."
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
        <p class="muted">Your token acts as {session.agent}: it may see the limits, and not change them.</p>
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

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Agent } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { notify } from "../../parts/toast.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { useAction } from "../../state/use-action.ts";
import { AgentForm } from "./agent-form.tsx";
import {
  type AgentDraft,
  type AgentDraftField,
  changeBody,
  differences,
  draftOf,
  PART_NAMES,
  rebased,
} from "./draft.ts";

/** The edit form, based on the agent as it was when the form was opened, with later changes by others. */
export function AgentEdit({
  agent,
  isArchived,
  saved,
}: {
  /** The agent as it is now. */
  readonly agent: Agent;
  readonly isArchived: boolean;
  readonly saved: (agent: Agent) => void;
}): JSX.Element {
  const [base, setBase] = useState(agent);
  const [draft, setDraft] = useState(() => draftOf(agent));
  const action = useAction();
  const before = draftOf(base);
  const mine = differences(before, draft);
  const isDirty = mine.length > 0;
  const theirs = differences(before, draftOf(agent));
  const isBehind = agent.version > base.version;

  function begin(from: Agent, with_: AgentDraft = draftOf(from)): void {
    setBase(from);
    setDraft(with_);
    action.clear();
  }

  // The form follows automatically if no input can be lost, or if the change does not affect its fields.
  const follows = isBehind && (!isDirty || theirs.length === 0);
  useEffect(() => {
    if (follows) begin(agent, rebased(draftOf(base), draft, draftOf(agent)));
  }, [follows, agent.version]);

  async function save(): Promise<void> {
    const body = changeBody(before, draft);
    const params = { name: agent.name };
    const changed = await action.run(() => call("PATCH /v1/agents/:name", { params, body }));
    if (!changed) return;
    begin(changed);
    saved(changed);
    notify(`${changed.name} is saved as version ${changed.version}.`);
  }

  return (
    <>
      <Unsaved isDirty={isDirty} />
      <AgentForm
        isNew={false}
        draft={draft}
        change={(part) => setDraft((typed) => ({ ...typed, ...part }))}
        problem={action.problem}
        save={() => void save()}
        notes={
          isBehind &&
          isDirty &&
          theirs.length > 0 && (
            <ChangedElsewhere
              agent={agent}
              from={base.version}
              theirs={theirs}
              mine={mine}
              load={() => begin(agent)}
              keep={() => begin(agent, rebased(before, draft, draftOf(agent)))}
            />
          )
        }
        actions={
          <>
            <button type="submit" class="button-main" disabled={action.isBusy || !isDirty || isArchived}>
              Save changes
            </button>
            <button type="button" disabled={action.isBusy || !isDirty} onClick={() => begin(agent)}>
              Discard
            </button>
            <span class="muted small">
              Version {base.version}
              {isDirty ? `. Not saved: ${namesOf(mine)}.` : ", with nothing to save."}
            </span>
          </>
        }
      />
    </>
  );
}

function namesOf(parts: readonly AgentDraftField[]): string {
  return parts.map((part) => PART_NAMES[part]).join(", ");
}

/** Shown when somebody else has saved while the reader is typing. Saving sends only the fields changed here. */
function ChangedElsewhere({
  agent: { version },
  from,
  theirs,
  mine,
  load,
  keep,
}: {
  readonly agent: Agent;
  readonly from: number;
  readonly theirs: readonly AgentDraftField[];
  readonly mine: readonly AgentDraftField[];
  readonly load: () => void;
  readonly keep: () => void;
}): JSX.Element {
  const both = theirs.filter((part) => mine.includes(part));
  return (
    <div class="note stack-small" role="alert">
      <strong>Somebody else has changed this agent.</strong>
      <span>
        You started from version {from}; the current version is {version}. Changed there: {namesOf(theirs)}.
        {both.length > 0 && ` Also changed here, and overwritten when you save: ${namesOf(both)}.`}
      </span>
      <div class="row">
        <button type="button" class="button-small" onClick={load}>
          Load version {version}, discard my changes
        </button>
        <button type="button" class="button-small" onClick={keep}>
          Load it, keep my changes
        </button>
      </div>
    </div>
  );
}

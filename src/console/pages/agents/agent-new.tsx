import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { call } from "../../api/client.ts";
import { Page } from "../../parts/page.tsx";
import { notify } from "../../parts/toast.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { useAction } from "../../state/use-action.ts";
import { AgentForm } from "./agent-form.tsx";
import { createBody, NEW_DRAFT } from "./draft.ts";
import { Lacking, useMayChange } from "./rights.tsx";

export function AgentNew(): JSX.Element {
  const mayChange = useMayChange();
  return (
    <Page
      title="Create an agent"
      lead="Name, owner and memory scope are enough to start. Everything else has a default and can be changed later."
    >
      {mayChange ? <NewAgent /> : <Lacking scope="agents:write" what="create agents" />}
    </Page>
  );
}

function NewAgent(): JSX.Element {
  const { route } = useLocation();
  const [draft, setDraft] = useState(NEW_DRAFT);
  const action = useAction();
  const isDirty = JSON.stringify(draft) !== JSON.stringify(NEW_DRAFT);

  async function create(): Promise<void> {
    const agent = await action.run(() => call("POST /v1/agents", { body: createBody(draft) }));
    if (!agent) return;
    notify(`${agent.name} is created.`);
    route(`/console/agents/${agent.name}`, true);
  }

  return (
    <>
      <Unsaved isDirty={isDirty} />
      <AgentForm
        isNew
        draft={draft}
        change={(part) => setDraft((before) => ({ ...before, ...part }))}
        problem={action.problem}
        save={() => void create()}
        actions={
          <>
            <button type="submit" class="button-main" disabled={action.isBusy}>
              Create the agent
            </button>
            <a class="button" href="/console/agents">
              Cancel
            </a>
          </>
        }
      />
    </>
  );
}

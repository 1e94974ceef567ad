import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Agent } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icons.tsx";
import { notify } from "../../parts/toast.tsx";
import { useWorkspaceStatus } from "../../state/usage.ts";
import { type Action, useAction } from "../../state/use-action.ts";
import { ArchiveAgent } from "./archive-agent.tsx";
import { useMayChange, useMayStop } from "./rights.tsx";

type PendingConfirmation = "stop" | "resume" | "archive";

interface ActionProps {
  readonly agent: Agent;
  readonly changed: (agent: Agent) => void;
}

/** Stop, resume and archive. Each asks for confirmation and is shown only to users who may do it. */
export function AgentActions({ agent, changed }: ActionProps): JSX.Element {
  const [asked, setAsked] = useState<PendingConfirmation | null>(null);
  const action = useAction();
  const { route } = useLocation();
  const mayStop = useMayStop();
  const mayChange = useMayChange();
  const workspace = useWorkspaceStatus();
  const close = () => {
    setAsked(null);
    action.clear();
  };
  return (
    <>
      {mayStop && agent.status === "active" && (
        <button type="button" class="button-bad" onClick={() => setAsked("stop")}>
          <Icon name="stop" />
          Stop
        </button>
      )}
      {mayStop && agent.status === "stopped" && workspace !== "stopped" && (
        <button type="button" onClick={() => setAsked("resume")}>
          <Icon name="play" />
          Resume
        </button>
      )}
      {mayChange && (
        <button type="button" onClick={() => setAsked("archive")}>
          Archive …
        </button>
      )}
      {asked === "stop" && <StopAgent agent={agent} changed={changed} action={action} close={close} />}
      {asked === "resume" && <ResumeAgent agent={agent} changed={changed} action={action} close={close} />}
      {asked === "archive" && (
        <ArchiveAgent
          name={agent.name}
          action={action}
          close={close}
          done={() => {
            notify(`${agent.name} is archived.`);
            route("/console/agents");
          }}
        />
      )}
    </>
  );
}

type QuestionProps = ActionProps & { readonly action: Action; readonly close: () => void };

function StopAgent({ agent: { name }, changed, action, close }: QuestionProps): JSX.Element {
  return (
    <Confirm
      title={`Stop ${name}?`}
      confirm="Stop the agent"
      action={action}
      close={close}
      work={async () => {
        changed(await call("POST /v1/agents/:name/stop", { params: { name } }));
        notify(`${name} is stopped.`);
      }}
    >
      <p>
        Its queued, running and waiting tasks are cancelled, calls in progress are aborted, and new tasks are
        refused until somebody resumes it.
      </p>
      <p class="muted">Cancelled tasks cannot be restored. The stop is recorded with your name.</p>
    </Confirm>
  );
}

function ResumeAgent({ agent: { name }, changed, action, close }: QuestionProps): JSX.Element {
  return (
    <Confirm
      title={`Resume ${name}?`}
      confirm="Resume the agent"
      isBad={false}
      action={action}
      close={close}
      work={async () => {
        changed(await call("POST /v1/agents/:name/resume", { params: { name } }));
        notify(`${name} is active again.`);
      }}
    >
      <p>It accepts new tasks again. Cancelled tasks are not restored.</p>
    </Confirm>
  );
}

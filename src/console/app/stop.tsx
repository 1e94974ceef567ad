import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { notify } from "../parts/toast.tsx";
import { useSession } from "../state/session.tsx";
import { useWorkspaceStatus } from "../state/usage.ts";
import { useAction } from "../state/use-action.ts";

/** Stops everything that agents do in the workspace. On every page, for users who may stop. */
export function StopButton(): JSX.Element | null {
  const { session, can } = useSession();
  const [isAsked, setAsked] = useState(false);
  const action = useAction();
  const status = useWorkspaceStatus();
  if (!can("approvals:write") || session.agent !== null || status === "stopped") return null;
  return (
    <>
      <button type="button" class="button-bad button-small" onClick={() => setAsked(true)}>
        <Icon name="stop" />
        Stop all
      </button>
      {isAsked && (
        <Confirm
          title={`Stop everything in ${session.workspace}?`}
          confirm="Stop all agents"
          action={action}
          close={() => setAsked(false)}
          work={async () => {
            await call("POST /v1/workspace/stop", {});
            notify("The workspace is stopped.");
          }}
        >
          <p>
            All running, waiting and queued tasks are cancelled, calls in progress are aborted, and new ones
            are refused until somebody resumes the workspace.
          </p>
          <p class="muted">Cancelled tasks cannot be restored. The stop is recorded with your name.</p>
        </Confirm>
      )}
    </>
  );
}

/** Shows on every page that the workspace is stopped, and offers to resume it. */
export function StoppedBanner(): JSX.Element | null {
  const { session, can } = useSession();
  const [isAsked, setAsked] = useState(false);
  const action = useAction();
  const status = useWorkspaceStatus();
  useEffect(() => {
    if (status !== "stopped") setAsked(false);
  }, [status]);
  if (status !== "stopped") return null;
  return (
    <div class="banner banner-bad" role="status">
      <strong>The workspace is stopped.</strong>
      <span>No agent is working, and new tasks are refused.</span>
      {can("approvals:write") && session.agent === null && (
        <button type="button" class="button-small" onClick={() => setAsked(true)}>
          <Icon name="play" />
          Resume
        </button>
      )}
      {isAsked && (
        <Confirm
          title={`Resume ${session.workspace}?`}
          confirm="Resume the workspace"
          isBad={false}
          action={action}
          close={() => setAsked(false)}
          work={() => call("POST /v1/workspace/resume", {})}
        >
          <p>Agents accept new tasks again. Agents that were stopped individually stay stopped.</p>
        </Confirm>
      )}
    </div>
  );
}

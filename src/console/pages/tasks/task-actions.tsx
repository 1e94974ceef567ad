import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Task } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { notify } from "../../parts/toast.tsx";
import { useSession } from "../../state/session.tsx";
import { useAction } from "../../state/use-action.ts";
import { askedText } from "./asked.ts";
import { EraseDialog } from "./erase.tsx";
import { isFinal } from "./final.ts";
import { OverrideDialog } from "./override.tsx";

type PendingAction = "cancel" | "override" | "erase";

/** Actions on a task that the reader may take. */
export function TaskActions({
  task,
  changed,
  readAnew,
}: {
  readonly task: Task;
  readonly changed: (task: Task) => void;
  /** Called when the task's texts or ledger entries have changed. */
  readonly readAnew: () => void;
}): JSX.Element {
  const { session, can } = useSession();
  const [asked, setAsked] = useState<PendingAction | null>(null);
  const isOver = isFinal(task.status);
  const isErased = askedText(task) === null;
  const isPerson = session.agent === null;
  const close = () => setAsked(null);
  return (
    <>
      {can("tasks:write") && (
        <a class="button" href={`/console/tasks?new&from=${encodeURIComponent(task.id)}`}>
          Run again
        </a>
      )}
      {isOver && can("tasks:write") && !isErased && (
        <a class="button" href={`/console/tasks?new&continue=${encodeURIComponent(task.id)}`}>
          Continue
        </a>
      )}
      {isOver && isPerson && can("approvals:write") && (
        <button type="button" onClick={() => setAsked("override")}>
          Override …
        </button>
      )}
      {isOver && isPerson && can("settings:write") && can("ledger:read") && !isErased && (
        <button type="button" onClick={() => setAsked("erase")}>
          Erase content …
        </button>
      )}
      {!isOver && can("tasks:write") && (
        <button type="button" class="button-bad" onClick={() => setAsked("cancel")}>
          Cancel …
        </button>
      )}
      {asked === "cancel" && <CancelDialog task={task} changed={changed} close={close} />}
      {asked === "override" && <OverrideDialog task={task} close={close} done={readAnew} />}
      {asked === "erase" && <EraseDialog task={task} close={close} done={readAnew} />}
    </>
  );
}

function CancelDialog({
  task,
  changed,
  close,
}: {
  readonly task: Task;
  readonly changed: (task: Task) => void;
  readonly close: () => void;
}): JSX.Element {
  const action = useAction();
  return (
    <Confirm
      title="Cancel this task?"
      confirm="Cancel the task"
      action={action}
      close={close}
      work={async () => {
        changed(await call("POST /v1/tasks/:id/cancel", { params: { id: task.id } }));
        notify("The task has been cancelled.");
      }}
    >
      <p>
        Model and tool calls in progress are aborted. Usage so far is charged, and the effects of tool calls
        remain.
      </p>
    </Confirm>
  );
}

import type { JSX } from "preact";
import type { Task } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { notify } from "../../parts/toast.tsx";
import { useAction } from "../../state/use-action.ts";

export function EraseDialog({
  task,
  close,
  done,
}: {
  readonly task: Task;
  readonly close: () => void;
  readonly done: () => void;
}): JSX.Element {
  const action = useAction();
  return (
    <Confirm
      title="Erase this task's content?"
      confirm="Erase for good"
      action={action}
      close={close}
      work={async () => {
        const seq = await dispatchSeq(task.id);
        await call("DELETE /v1/ledger/:seq/payload", { params: { seq: String(seq) } });
        notify("The content has been erased.");
        done();
      }}
    >
      <p>
        The prompt, the output, and the arguments and results of its calls are deleted from the server and
        cannot be restored.
      </p>
      <p class="muted">
        The ledger still records that it ran, who requested it and what it cost, and its proofs stay valid.
        The erasure is recorded with your name.
      </p>
    </Confirm>
  );
}

/** A task's texts are erased through its dispatch entry. */
async function dispatchSeq(task: string): Promise<number> {
  let cursor: string | undefined;
  do {
    const query = { task, action: "task.dispatch", limit: 10, ...(cursor === undefined ? {} : { cursor }) };
    const page = await call("GET /v1/ledger", { query });
    const dispatched = page.data.find(({ outcome }) => outcome !== "denied");
    if (dispatched) return dispatched.seq;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  throw new ApiProblem(404, {
    code: "not_found",
    detail: "The ledger has no entry that dispatched this task.",
  });
}

import type { JSX } from "preact";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";

/** A call that waits for approval and has become a task, with a link to the decision for readers who may see it. */
export function AskedLink({ task }: { readonly task: string }): JSX.Element {
  const { can } = useSession();
  const approvals = useData(
    "GET /v1/approvals",
    can("approvals:write") ? { query: { task, status: "all" } } : null,
    // The task asks only after it has started.
    ["approval.changed"],
  );
  const asked = approvals.data?.data[0];
  return (
    <div class="note stack-small">
      <strong>The call is waiting for a person to approve it.</strong>
      <span>
        It has become a task and runs once somebody approves it. Its answer will be the task's output.
      </span>
      <span class="row">
        {asked && (
          <a
            class="button"
            href={`/console/approvals/${encodeURIComponent(task)}/${encodeURIComponent(asked.call_id)}`}
          >
            Open the approval
          </a>
        )}
        {can("tasks:read") && (
          <a class="button" href={`/console/tasks/${encodeURIComponent(task)}`}>
            Open the task
          </a>
        )}
        {!asked && !can("tasks:read") && <code>{task}</code>}
      </span>
    </div>
  );
}

import type { JSX } from "preact";
import type { Task } from "../../../http/api.ts";

type Code = NonNullable<Task["error"]>["code"];

/** Advice by error code. */
const ADVICE: Readonly<Record<Code, (task: Task) => JSX.Element>> = {
  model_unavailable: ({ agent }) => (
    <>
      Every model of the tier failed, or none is allowed. See what each answered in the timeline, then run it
      again, or in another tier. The <a href={`/console/agents/${agent}`}>agent's policy</a> says which models
      it may use.
    </>
  ),
  tool_loop_limit: ({ agent }) => (
    <>
      It took as many steps as it may. Make the task smaller, or let the{" "}
      <a href={`/console/agents/${agent}`}>agent</a> take more.
    </>
  ),
  timeout: () => <>It took longer than a task may. Make it smaller, or run it again.</>,
  interrupted: () => (
    <>The server ended while it ran, and it could not go on from where it was. Run it again.</>
  ),
  credits_exhausted: ({ agent }) => (
    <>
      A budget is spent. Raise that of the <a href={`/console/agents/${agent}`}>agent</a> or of the{" "}
      <a href="/console/settings">workspace</a>, or wait until it begins anew.
    </>
  ),
  agent_stopped: ({ agent }) => (
    <>
      Somebody stopped the agent, or the whole workspace. Resume the{" "}
      <a href={`/console/agents/${agent}`}>agent</a>, then run it again.
    </>
  ),
  internal: () => <>The task's id finds the cause in the server's log.</>,
};

/** Why a task failed, with advice. */
export function TaskErrorNote({ task }: { readonly task: Task }): JSX.Element | null {
  const { error } = task;
  if (!error) return null;
  return (
    <div class="problem" role="alert">
      <strong class="break">{error.message}</strong>
      <span>{ADVICE[error.code](task)}</span>
      <span class="muted small">{error.code}</span>
    </div>
  );
}

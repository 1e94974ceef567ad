import type { JSX } from "preact";
import type { Task } from "../../../http/api.ts";

type Code = NonNullable<Task["error"]>["code"];

/** Advice by error code. */
const ADVICE: Readonly<Record<Code, (task: Task) => JSX.Element>> = {
  model_unavailable: ({ agent }) => (
    <>
      Every model of the tier failed, or none is allowed. Check the answers in the timeline, then run the task
      again, or in another tier. The <a href={`/console/agents/${agent}`}>agent's policy</a> lists the models
      it may use.
    </>
  ),
  tool_loop_limit: ({ agent }) => (
    <>
      It reached its maximum number of steps. Split the task, or raise the maximum of the{" "}
      <a href={`/console/agents/${agent}`}>agent</a>.
    </>
  ),
  output_invalid: () => (
    <>
      The model's answer did not match the schema, even after two corrections. State in the prompt what you
      need, simplify the schema, or run it again in another tier.
    </>
  ),
  document_unavailable: ({ agent }) => (
    <>
      A document in the vault that the task names was deleted, changed or moved out of what the{" "}
      <a href={`/console/agents/${agent}`}>agent</a> may see. Start a new task without it.
    </>
  ),
  timeout: () => <>It took too long. Split the task, or run it again.</>,
  interrupted: () => (
    <>The server stopped while the task was running, and the task could not continue. Run it again.</>
  ),
  credits_exhausted: ({ agent }) => (
    <>
      A budget is spent. Raise the budget of the <a href={`/console/agents/${agent}`}>agent</a> or of the{" "}
      <a href="/console/settings">workspace</a>, or wait until its next period.
    </>
  ),
  agent_stopped: ({ agent }) => (
    <>
      Somebody stopped the agent, or the whole workspace. Resume the{" "}
      <a href={`/console/agents/${agent}`}>agent</a>, then run it again.
    </>
  ),
  internal: () => <>Look up the task's id in the server's log to find the cause.</>,
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

import { Problem } from "../base/errors.ts";
import type { TaskFacts } from "./task.ts";

export function noTask(id: string): Problem {
  return new Problem("not_found", `There is no task ${JSON.stringify(id)}.`);
}

export function agentForbidden(acting: string): Problem {
  return new Problem(
    "agent_forbidden",
    `This token acts as ${acting} and may only dispatch tasks to that agent.`,
  );
}

export function notCancelled(): Problem {
  return new Problem(
    "internal",
    "The task's end could not be written, so it may not have been cancelled. Read the task to check its status.",
  );
}

export function finished(task: TaskFacts): Problem {
  return new Problem("task_finished", `The task has already ended (${task.status}).`);
}

export function notFinished({ id, status }: TaskFacts): Problem {
  return new Problem("task_not_finished", `Task ${id} is ${status}. Continue it after it has ended.`);
}

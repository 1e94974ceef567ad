import type { TaskStatus } from "../../../http/api.ts";

/** Whether a task has ended. */
export function isFinal(status: TaskStatus): boolean {
  return status === "succeeded" || status === "failed" || status === "cancelled";
}

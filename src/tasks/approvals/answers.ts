import type { ToolAnswer } from "../../connectors/source.ts";

/**
 * What tools answered to calls that clients wait for, as it came: a task's output is text alone. Kept for who waits in this
 * process, and for no longer than that.
 */
export class CallAnswers {
  readonly #awaited = new Map<string, ToolAnswer | null>();

  /** From now on the task's answer is kept, until `leave`. */
  expect(taskId: string): void {
    this.#awaited.set(taskId, null);
  }

  put(taskId: string, answer: ToolAnswer): void {
    if (this.#awaited.has(taskId)) this.#awaited.set(taskId, answer);
  }

  /** Null where the tool was not called, or nobody has said that they wait. */
  find(taskId: string): ToolAnswer | null {
    return this.#awaited.get(taskId) ?? null;
  }

  leave(taskId: string): void {
    this.#awaited.delete(taskId);
  }
}

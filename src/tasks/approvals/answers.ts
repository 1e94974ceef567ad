import type { ToolAnswer } from "../../connectors/source.ts";

/**
 * Full tool answers for calls that clients wait for, since a task's output is only text. An answer is kept only while
 * a client of this process waits.
 */
export class CallAnswers {
  readonly #awaited = new Map<string, ToolAnswer | null>();

  /** Keeps the task's answer from now on, until `leave`. */
  expect(taskId: string): void {
    this.#awaited.set(taskId, null);
  }

  put(taskId: string, answer: ToolAnswer): void {
    if (this.#awaited.has(taskId)) this.#awaited.set(taskId, answer);
  }

  /** Null if the tool was not called, or if `expect` was not called for the task. */
  find(taskId: string): ToolAnswer | null {
    return this.#awaited.get(taskId) ?? null;
  }

  leave(taskId: string): void {
    this.#awaited.delete(taskId);
  }
}

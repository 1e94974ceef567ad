import { Signal } from "../base/signal.ts";

/** Changes to tasks, for the metrics and the feed. */
export class TaskSignals {
  /** A task's row has changed. Emitted once the change is on disk. */
  readonly changed = new Signal<{ readonly workspaceId: number; readonly task: string }>();
  /** A call waits for a person, was decided or was withdrawn. Emitted once the change is on disk. */
  readonly approvalChanged = new Signal<{
    readonly workspaceId: number;
    readonly task: string;
    readonly callId: string;
  }>();
  /** A model call has ended. `credits` in micro-credits. */
  readonly modelCalled = new Signal<{
    readonly model: string;
    readonly status: "succeeded" | "failed" | "cancelled";
    readonly durationMs: number;
    readonly credits: number;
    readonly inputTokens: number;
    readonly outputTokens: number;
  }>();
  readonly toolCalled = new Signal<{ readonly status: string }>();
  readonly ended = new Signal<{ readonly status: string; readonly durationMs: number }>();
}

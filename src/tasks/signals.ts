import { Signal } from "../base/signal.ts";
import type { TaskInterruption } from "./ending/interruption.ts";
import type { QueuedTask } from "./queue/scheduler.ts";

/** Stored responses whose texts were erased: those with these ids, or all with a request in an entry up to `upTo`. */
export type ErasedResponses = { readonly workspaceId: number } & (
  | { readonly ids: readonly string[] }
  | { readonly upTo: number }
);

/** Changes to tasks and to stored responses, for the metrics, the feed and open streams. */
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
  /** Emitted once the erasure is on disk. */
  readonly responsesErased = new Signal<ErasedResponses>();
  /** A person has cancelled a task whose claim this node lost before its end was written. It goes on elsewhere. */
  readonly endLost = new Signal<{ readonly queued: QueuedTask; readonly interruption: TaskInterruption }>();
  readonly ended = new Signal<{ readonly status: string; readonly durationMs: number }>();
}

import type { ToolStatus } from "../agents/index.ts";
import type { InputForm, TaskInput } from "./input/task-input.ts";

export const TASK_STATUSES = [
  "queued",
  "running",
  "awaiting_approval",
  "succeeded",
  "failed",
  "cancelled",
] as const;

export type TaskStatus = (typeof TASK_STATUSES)[number];
export type FinalStatus = "succeeded" | "failed" | "cancelled";

export type TaskErrorCode =
  | "model_unavailable"
  | "tool_loop_limit"
  | "output_invalid"
  | "document_unavailable"
  | "timeout"
  | "interrupted"
  | "credits_exhausted"
  | "agent_stopped"
  | "internal";

/** A task as stored. Texts (input, output, arguments) are null if their payload was erased. */
export interface Task {
  readonly workspaceId: number;
  readonly id: string;
  readonly agentId: number;
  readonly agent: string;
  readonly tier: number;
  readonly input: TaskInput | null;
  readonly inputForm: InputForm;
  /** The id of the task whose conversation it continues. */
  readonly continues: string | null;
  readonly tools: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly status: TaskStatus;
  /** How many times it has been started. */
  readonly attempts: number;
  readonly output: string | null;
  readonly model: string | null;
  /** Micro-credits. */
  readonly credits: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly steps: number;
  readonly error: { readonly code: TaskErrorCode; readonly message: string } | null;
  readonly toolsCalled: readonly ToolCallRecord[];
  /** Seq of the ledger entry that dispatched it. */
  readonly dispatchSeq: number;
  /** Seq of a `model.call` intent whose outcome is not recorded yet. */
  readonly openModelCall: number | null;
  /** Micro-credits to charge if this call's outcome is never recorded; meaningless without an open call. */
  readonly openReserved: number;
  /** No event with a higher id has ever been sent. */
  readonly eventCeiling: number;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

/** A task without its texts. */
export type TaskFacts = Omit<Task, "input" | "output" | "toolsCalled">;

export interface ToolCallRecord {
  readonly id: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly status: ToolStatus;
  /** Seq of the `tool.call` intent. */
  readonly intentSeq: number;
  /** Seq of its outcome; null while the call is in flight. */
  readonly outcomeSeq: number | null;
  readonly startedAt: number;
  readonly durationMs: number | null;
  /** Its price in micro-credits, if it is made. */
  readonly price: number;
}

export function isFinal(status: TaskStatus): status is FinalStatus {
  return status === "succeeded" || status === "failed" || status === "cancelled";
}

/**
 * The time `at`, or the latest time recorded for the task if that is later: the machine's clock may have been set
 * back.
 */
export function notBefore({ createdAt, startedAt }: Task, at: number): number {
  return Math.max(at, startedAt ?? createdAt);
}

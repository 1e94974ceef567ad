import type { AgentFailureCode } from "./errors.ts";
import type { JsonValue, ToolStatus } from "./message.ts";
import type { TokenUsage } from "./model/usage.ts";

/**
 * The reason that a model gave for the end of its answer. `error` and `interrupted` never appear here, because they
 * are failures.
 */
export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "other";

/**
 * A step begins: one answer of a model and the tool calls that it requests. Steps count from 1, including those
 * before the run was resumed.
 */
export interface StepStarted {
  readonly type: "step.started";
  readonly step: number;
}

/** A request to this model begins. */
export interface ModelStarted {
  readonly type: "model.started";
  readonly model: string;
}

/** Text of the model, unchanged: a delta may end inside a surrogate pair. */
export interface OutputDelta {
  readonly type: "output.delta";
  readonly text: string;
}

/**
 * The text since the last tool result is to be discarded: the step is tried again, or its answer was not valid output
 * and the model is correcting it.
 */
export interface OutputReset {
  readonly type: "output.reset";
}

/**
 * `from` failed and `to` is tried. `reason` is one of a few plain words, such as `timeout`, `rate_limited`,
 * `http_500`.
 */
export interface ModelFallback {
  readonly type: "model.fallback";
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

/** A model requested this call. It has not been made yet, and may be refused. */
export interface ToolCallEvent {
  readonly type: "tool.call";
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonValue;
}

/** The result of a call. `durationMs` is the time spent in the tool, 0 if it was not called. */
export interface ToolResultEvent {
  readonly type: "tool.result";
  readonly id: string;
  readonly tool: string;
  readonly status: ToolStatus;
  readonly durationMs: number;
  readonly output: JsonValue;
}

/** The model has answered and its tools have run. `usage` covers only the answer, not failed attempts. */
export interface StepFinished {
  readonly type: "step.finished";
  readonly step: number;
  readonly model: string;
  readonly usage: TokenUsage;
  readonly finishReason: FinishReason;
}

/** The last event of a run with an answer. `usage` is for all model calls, including failed attempts. */
export interface AgentFinished {
  readonly type: "agent.finished";
  readonly output: string;
  /** The output's value, if the run has the option `output`. */
  readonly json?: JsonValue;
  readonly usage: TokenUsage;
  readonly steps: number;
}

/** The last event of a run without an answer. `message` is safe to show. */
export interface AgentFailed {
  readonly type: "agent.failed";
  readonly code: AgentFailureCode;
  readonly message: string;
  readonly usage: TokenUsage;
  readonly steps: number;
  /** The underlying error, for the host's log. Not enumerable: it may contain secrets and never appears in JSON. */
  readonly cause?: unknown;
}

export type AgentEvent =
  | StepStarted
  | ModelStarted
  | OutputDelta
  | OutputReset
  | ModelFallback
  | ToolCallEvent
  | ToolResultEvent
  | StepFinished
  | AgentFinished
  | AgentFailed;

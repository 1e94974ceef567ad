import type { AgentFailureCode } from "./errors.ts";
import type { JsonValue, ToolStatus } from "./message.ts";
import type { Usage } from "./usage.ts";

/** How a model said that it ended. `error` and `interrupted` never show: they are failures. */
export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "other";

/** A step begins: one answer of a model and the tool calls that it asks for. Counted from 1, over resumed runs as well. */
export interface StepStarted {
  readonly type: "step.started";
  readonly step: number;
}

/** This model is now being asked. */
export interface ModelStarted {
  readonly type: "model.started";
  readonly model: string;
}

/** Text of the model exactly as it came: a delta may end inside a surrogate pair. */
export interface OutputDelta {
  readonly type: "output.delta";
  readonly text: string;
}

/** The text since the last tool result is to be thrown away: the step is being tried again. */
export interface OutputReset {
  readonly type: "output.reset";
}

/** `from` failed and `to` is tried. `reason` is one of few plain words, such as `timeout`, `rate_limited`, `http_500`. */
export interface ModelFallback {
  readonly type: "model.fallback";
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

/** A model asked for this call. It has not been made yet, and may be refused. */
export interface ToolCalled {
  readonly type: "tool.call";
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonValue;
}

/** What came of the call. `durationMs` is the time in the tool alone, 0 when it was not called. */
export interface ToolAnswered {
  readonly type: "tool.result";
  readonly id: string;
  readonly tool: string;
  readonly status: ToolStatus;
  readonly durationMs: number;
  readonly output: JsonValue;
}

/** The model has answered and its tools have run. `usage` is of the answer, without the attempts that failed. */
export interface StepFinished {
  readonly type: "step.finished";
  readonly step: number;
  readonly model: string;
  readonly usage: Usage;
  readonly finishReason: FinishReason;
}

/** The last event of a run that has an answer. `usage` is of every model call, failed attempts included. */
export interface AgentFinished {
  readonly type: "agent.finished";
  readonly output: string;
  readonly usage: Usage;
  readonly steps: number;
}

/** The last event of a run that has none. `message` is safe to show. */
export interface AgentFailed {
  readonly type: "agent.failed";
  readonly code: AgentFailureCode;
  readonly message: string;
  readonly usage: Usage;
  readonly steps: number;
  /** What really happened, for the host's log. Not enumerable: it may hold secrets and never gets into JSON. */
  readonly cause?: unknown;
}

export type AgentEvent =
  | StepStarted
  | ModelStarted
  | OutputDelta
  | OutputReset
  | ModelFallback
  | ToolCalled
  | ToolAnswered
  | StepFinished
  | AgentFinished
  | AgentFailed;

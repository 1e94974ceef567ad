/**
 * Thrown by a hook to refuse a call as a decision, not as a fault: the run ends with `agent.failed` and code `denied`.
 * The message is shown in that event, so it MUST hold nothing secret; `code` is for the host's own use, it finds it on
 * the event's `cause`.
 */
export class AgentDenied extends Error {
  override readonly name = "AgentDenied";
  readonly code: string;

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Thrown by a tool to tell the model what went wrong: the message is shown to the model and in `tool.result`. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** Why a run ended without an answer. */
export type AgentFailureCode =
  | "model_unavailable"
  | "timeout"
  | "tool_loop_limit"
  | "cancelled"
  | "denied"
  | "internal";

/** A model's answer exceeds a limit. The call fails, and the next model of the route is asked. */
export class AnswerTooLarge extends Error {
  override readonly name = "AnswerTooLarge";
}

/** Ends the run from any depth; caught in one place and turned into `agent.failed`. Never leaves this folder. */
export class RunFailure extends Error {
  override readonly name = "RunFailure";
  readonly code: AgentFailureCode;

  constructor(code: AgentFailureCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

export function cancelled(signal: AbortSignal): RunFailure {
  return new RunFailure("cancelled", "The run was cancelled.", signal.reason);
}

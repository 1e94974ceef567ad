/**
 * Thrown by a hook to refuse a call deliberately: the run ends with `agent.failed` and code `denied`. The message is
 * shown in that event, so it MUST NOT contain secrets. `code` is for the host, which finds it on the event's `cause`.
 */
export class AgentDenied extends Error {
  override readonly name = "AgentDenied";
  readonly code: string;

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Thrown by a tool to tell the model what went wrong. The message is shown to the model and in `tool.result`. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** Why a run ended without an answer. */
export type AgentFailureCode =
  | "model_unavailable"
  | "timeout"
  | "tool_loop_limit"
  | "output_invalid"
  | "cancelled"
  | "denied"
  | "internal";

/**
 * A model's answer exceeds a limit. The call fails, and the next model of the route is tried. Providers may throw it
 * too.
 */
export class AnswerTooLarge extends Error {
  override readonly name = "AnswerTooLarge";
}

/** Ends the run from any depth. Caught in one place and turned into `agent.failed`; never leaves this folder. */
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

import { AgentDenied, cancelled, RunFailure } from "./errors.ts";
import type { JsonValue, Message, ToolCall, ToolStatus } from "./message.ts";
import type { TokenUsage } from "./model/usage.ts";

/** A model is about to be called. `attempt` counts from 1 within the step. */
export interface BeforeModelCall {
  readonly step: number;
  readonly model: string;
  readonly attempt: number;
  /** The conversation to be sent, without the instructions. */
  readonly messages: readonly Message[];
  /**
   * Size in bytes of everything to be sent, as JSON: instructions, messages, results and the definitions of the
   * offered tools. Measured when first called.
   */
  sentBytes(): number;
  readonly signal: AbortSignal;
}

export interface AfterModelCall {
  readonly step: number;
  readonly model: string;
  readonly attempt: number;
  readonly status: "succeeded" | "failed" | "cancelled";
  /**
   * The usage to charge. For a cancelled attempt, it is an estimate up to that point. The same applies to a failed
   * attempt if anything was received.
   */
  readonly usage: TokenUsage;
  /** As in `BeforeModelCall`. */
  sentBytes(): number;
  /** The text received, complete or not. */
  readonly text: string;
  /** Empty unless succeeded. Together with `text`, the assistant message of this step. */
  readonly toolCalls: readonly ToolCall[];
  /** The provider's error, unchanged: it may contain secrets. */
  readonly error?: unknown;
  /** A one-word reason for the failure that is safe to show, such as `timeout`; also in `model.fallback`. */
  readonly reason?: string;
  readonly durationMs: number;
}

/** A tool is about to be called with arguments that passed its schema. */
export interface BeforeToolCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonValue;
  /**
   * A hook that waits a long time (for a person's approval) MUST give up when this aborts, because hooks are never
   * abandoned.
   */
  readonly signal: AbortSignal;
}

/** Refuses one call. The model is told the reason, and the run continues. */
export interface Deny {
  readonly deny: string;
}

/** Why a call was `denied`, i.e. refused before it reached the tool. */
export type RefusalCode =
  | "unknown_tool"
  | "invalid_arguments"
  | "tool_forbidden"
  | "refused_by_host"
  | "cancelled";

export interface AfterToolCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonValue;
  readonly status: ToolStatus;
  /** The output that the model sees. */
  readonly output: JsonValue;
  /** False if the call was refused before it reached the tool. */
  readonly dispatched: boolean;
  /** Only with status `denied`. */
  readonly code?: RefusalCode;
  readonly durationMs: number;
  /** The error thrown by the tool. */
  readonly error?: unknown;
}

/**
 * Extension points for a host: evidence, budgets, approvals and checkpoints. Hooks may be async; the run waits for them.
 *
 * - A before-hook that throws stops the run before the call is made, with `denied` for an AgentDenied, otherwise
 *   `internal`.
 * - An after-hook that throws fails the run with `internal`.
 * - `afterModelCall` is called exactly once for each `beforeModelCall` that did not throw, even if the run is cancelled
 *   or its reader has left.
 * - `afterToolCall` is called exactly once for each call that a model requested, including calls refused without
 *   `beforeToolCall` (unknown, invalid, forbidden), unless `beforeToolCall` threw.
 */
export interface Hooks {
  beforeModelCall?(info: BeforeModelCall): void | Promise<void>;
  afterModelCall?(info: AfterModelCall): void | Promise<void>;
  // biome-ignore lint/suspicious/noConfusingVoidType: a hook that only observes returns nothing.
  beforeToolCall?(info: BeforeToolCall): void | Deny | Promise<void | Deny>;
  afterToolCall?(info: AfterToolCall): void | Promise<void>;
}

/** The models and tools that a run may use; checked before every call. Anything not forbidden is allowed. */
export interface RunPolicy {
  /** A refused model is skipped and never called. */
  allowModel?(id: string): boolean;
  /** A refused tool is not offered, and calls to it are denied. */
  allowTool?(name: string): boolean;
}

/**
 * Calls a before-hook, and turns what it throws into the end of the run.
 * @param what The call that the hook is for, as the subject of a sentence.
 */
export async function callBefore<Result>(
  what: string,
  signal: AbortSignal,
  hook: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    const result = hook();
    return isPromise(result) ? await result : result;
  } catch (cause) {
    if (cause instanceof AgentDenied) throw new RunFailure("denied", cause.message, cause);
    if (signal.aborted) throw cancelled(signal);
    throw new RunFailure("internal", `${what} could not be prepared.`, cause);
  }
}

/**
 * Calls an after-hook. A call that could not be recorded must not count, or the run would act on a result without
 * evidence.
 */
export async function callAfter(what: string, hook: () => void | Promise<void>): Promise<void> {
  try {
    const done = hook();
    if (isPromise(done)) await done;
  } catch (cause) {
    throw new RunFailure("internal", `${what} could not be recorded.`, cause);
  }
}

/** Distinguishes promises from plain values, so a synchronous hook costs no turn of the event loop. */
function isPromise<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

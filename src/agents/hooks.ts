import type { JsonValue, Message, ToolCall, ToolStatus } from "./message.ts";
import type { Usage } from "./usage.ts";

/** A model is about to be asked. `attempt` counts from 1 within the step. */
export interface BeforeModelCall {
  readonly step: number;
  readonly model: string;
  readonly attempt: number;
  /** The conversation as it will be sent, without the instructions. */
  readonly messages: readonly Message[];
  /**
   * Bytes of all that will be sent: instructions, messages, results and the definitions of the tools on offer, as JSON. Measured
   * when it is first asked for.
   */
  sentBytes(): number;
  readonly signal: AbortSignal;
}

export interface AfterModelCall {
  readonly step: number;
  readonly model: string;
  readonly attempt: number;
  readonly status: "succeeded" | "failed" | "cancelled";
  /** What to charge: of a failed attempt an estimate if anything had come, of a cancelled one an estimate so far. */
  readonly usage: Usage;
  /** As the hook before the call had it. */
  sentBytes(): number;
  /** What came, complete or not. */
  readonly text: string;
  /** Empty unless succeeded. With `text` it makes the assistant message of this step. */
  readonly toolCalls: readonly ToolCall[];
  /** The provider's error as it is: it may hold secrets. */
  readonly error?: unknown;
  /** What went wrong in a plain word that is safe to show, such as `timeout`; as in `model.fallback`. */
  readonly reason?: string;
  readonly durationMs: number;
}

/** A tool is about to be called, with arguments that passed its schema. */
export interface BeforeToolCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonValue;
  /** A hook that waits long (for a person's approval) MUST give up when this aborts: hooks are never abandoned. */
  readonly signal: AbortSignal;
}

/** Refuses one call; the model is told the reason and goes on. */
export interface Deny {
  readonly deny: string;
}

/** Why a call was `denied`, that is, refused before it reached the tool. */
export type Refusal =
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
  /** What the model is shown. */
  readonly output: JsonValue;
  /** False when the call was refused before it reached the tool. */
  readonly dispatched: boolean;
  /** With status `denied` only. */
  readonly code?: Refusal;
  readonly durationMs: number;
  /** What the tool threw. */
  readonly error?: unknown;
}

/**
 * Where a host adds evidence, budgets, approvals and checkpoints. A hook may be async; nothing goes on before it is done.
 *
 * - A before-hook that throws stops the run before the call is made: `denied` for an AgentDenied, else `internal`.
 * - An after-hook that throws fails the run with `internal`.
 * - `afterModelCall` is called exactly once for each `beforeModelCall` that did not throw, also when the run is
 *   cancelled or its reader has left.
 * - `afterToolCall` is called exactly once for each call that a model asked for, those refused without
 *   `beforeToolCall` (unknown, invalid, forbidden) included, except where `beforeToolCall` threw.
 */
export interface Hooks {
  beforeModelCall?(info: BeforeModelCall): void | Promise<void>;
  afterModelCall?(info: AfterModelCall): void | Promise<void>;
  // biome-ignore lint/suspicious/noConfusingVoidType: a hook that only watches returns nothing at all.
  beforeToolCall?(info: BeforeToolCall): void | Deny | Promise<void | Deny>;
  afterToolCall?(info: AfterToolCall): void | Promise<void>;
}

/** What the run may use; asked anew before every call. What is not forbidden is allowed. */
export interface Policy {
  /** A model refused here is skipped and never called. */
  allowModel?(id: string): boolean;
  /** A tool refused here is not offered, and a call of it is denied. */
  allowTool?(name: string): boolean;
}

import { latencyClass } from "./latency.ts";

/**
 * `client`: a model call that a client has made itself, outside of tasks, in addition to its row as `model`. `count`: a
 * client's request to a provider to count tokens.
 */
export type UsageKind = "task" | "model" | "tool" | "client" | "count";

/** The result of a task, a model call, a tool call or a count of tokens. */
export interface UsageRecord {
  readonly workspaceId: number;
  /** Null: the caller does not act as an agent. */
  readonly agentId: number | null;
  readonly kind: UsageKind;
  /** The model or tool as configured or listed; `UNKNOWN_TOOL`; the dialect of a count; empty for a task. */
  readonly name: string;
  /** `succeeded` or `failed`; for tasks and models also `cancelled`, for tools also `denied` and `unknown`. */
  readonly outcome: string;
  /** When it ended, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** Null: not measured. Only used if the outcome is `succeeded` or `failed`. */
  readonly durationMs: number | null;
  /** Micro-credits charged for the call. Absent for a task, whose calls are already counted. */
  readonly credits?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** Only for a model call that a client made itself. */
  readonly client?: ClientUsage | undefined;
}

export interface ClientUsage {
  readonly dialect: string;
  /** The time from sending the request to the arrival of the first part of the answer. Null if nothing arrived. */
  readonly firstTokenMs: number | null;
}

/**
 * Replaces a tool name that a model or client made up. Names are kept for a long time, so their number must be
 * limited.
 */
export const UNKNOWN_TOOL = "(unknown)";
/** Replaces an agent's id for callers that do not act as an agent. Agents' ids begin at 1. */
export const NO_AGENT = 0;
/** The resolution at which calls are counted. */
export const FIVE_MINUTES_MS = 300_000;

/** A row of `usage_counts`. */
export interface UsageCount {
  readonly slot: number;
  readonly agentId: number;
  readonly kind: UsageKind;
  readonly name: string;
  readonly outcome: string;
  readonly bucket: number;
  readonly count: number;
  readonly credits: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The start of the slot that contains a time, in milliseconds. A day's slot is a UTC day. */
export function slotOf(at: number, width: number): number {
  return Math.floor(at / width) * width;
}

/** The rows that a call adds, with their keys and amounts. */
export function countsOf(usage: UsageRecord): UsageCount[] {
  const count = countOf(usage);
  if (!usage.client) return [count];
  const { dialect, firstTokenMs } = usage.client;
  return [count, countOf({ ...usage, kind: "client", name: dialect, durationMs: firstTokenMs })];
}

function countOf(usage: UsageRecord): UsageCount {
  const isMeasured = usage.outcome === "succeeded" || usage.outcome === "failed";
  return {
    slot: slotOf(usage.at, FIVE_MINUTES_MS),
    agentId: usage.agentId ?? NO_AGENT,
    kind: usage.kind,
    name: usage.name,
    outcome: usage.outcome,
    bucket: latencyClass(isMeasured ? usage.durationMs : null),
    count: 1,
    credits: usage.credits ?? 0,
    inputTokens: usage.inputTokens ?? 0,
    outputTokens: usage.outputTokens ?? 0,
  };
}

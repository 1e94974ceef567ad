import type { Tx } from "../../store/db.ts";
import { latencyClass } from "./latency.ts";

export type UsageKind = "task" | "model" | "tool";

/** What came of a task, a call of a model or a call of a tool. */
export interface Usage {
  readonly workspaceId: number;
  /** Null: by nobody who acts as an agent. */
  readonly agentId: number | null;
  readonly kind: UsageKind;
  /** The model's or the tool's, of which configuration and catalogue know; `UNKNOWN_TOOL`; empty for a task. */
  readonly name: string;
  /** `succeeded`, `failed`; of tasks and models also `cancelled`, of tools also `denied` and `unknown`. */
  readonly outcome: string;
  /** When it ended, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** Null: not measured. It counts for what succeeded or failed alone. */
  readonly durationMs: number | null;
  /** Micro-credits that the call was charged. A task's own are those of its calls, and are not counted again. */
  readonly credits?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/** In the place of a tool's name that a model or a client made up: names are kept for long, and there must not be any number. */
export const UNKNOWN_TOOL = "(unknown)";
/** In the place of an agent's id: by nobody who acts as an agent. Agents' ids begin at 1. */
export const NO_AGENT = 0;
/** How finely time is kept. */
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

/** The start of the slot that a time is in, in milliseconds. Slots of a day are days of UTC. */
export function slotOf(at: number, width: number): number {
  return Math.floor(at / width) * width;
}

/** The row that a call adds to, with what it adds. */
export function countOf(usage: Usage): UsageCount {
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

/** Adds to the statistics what has ended, in the transaction of the entry that says so: one statement, one row. */
export function recordUsage(tx: Tx, usage: Usage): Promise<void> {
  return addCount(tx, usage.workspaceId, countOf(usage));
}

const ADD = `INSERT INTO usage_counts (workspace_id, slot, agent_id, kind, name, outcome, bucket, count, credits, input_tokens,
    output_tokens) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
  ON CONFLICT (workspace_id, slot, agent_id, kind, name, outcome, bucket) DO UPDATE
    SET count = usage_counts.count + excluded.count, credits = usage_counts.credits + excluded.credits,
      input_tokens = usage_counts.input_tokens + excluded.input_tokens,
      output_tokens = usage_counts.output_tokens + excluded.output_tokens`;

export async function addCount(tx: Tx, workspaceId: number, row: UsageCount): Promise<void> {
  const { slot, agentId, kind, name, outcome, bucket, count, credits, inputTokens, outputTokens } = row;
  const key = [workspaceId, slot, agentId, kind, name, outcome, bucket];
  await tx.run(ADD, [...key, count, credits, inputTokens, outputTokens]);
}

import { cappedSum } from "../../base/credits.ts";
import type { Tx } from "../../store/db.ts";

/** A model call that is about to be made. */
export interface OpenModelCall {
  /** Seq of the intent. */
  readonly seq: number;
  readonly model: string;
  /** Micro-credits to charge if the outcome is never recorded. */
  readonly reserved: number;
}

export function openModelCall(
  tx: Tx,
  workspaceId: number,
  id: string,
  { seq, model, reserved }: OpenModelCall,
): void {
  tx.write(
    "UPDATE tasks SET open_model_call = $3, model = $4, open_reserved = $5 WHERE workspace_id = $1 AND id = $2",
    [workspaceId, id, seq, model, reserved],
  );
}

/** Adds the cost of a tool call, in micro-credits. */
export function chargeTask(tx: Tx, workspaceId: number, id: string, micros: number): void {
  if (micros === 0) return;
  tx.write(`UPDATE tasks SET credits = ${cappedSum("credits", "$3")} WHERE workspace_id = $1 AND id = $2`, [
    workspaceId,
    id,
    micros,
  ]);
}

export interface ModelCallCharge {
  readonly credits: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** 1 for an accepted answer, 0 for a failed attempt. */
  readonly steps: number;
}

export function closeModelCall(tx: Tx, workspaceId: number, id: string, charge: ModelCallCharge): void {
  tx.write(
    `UPDATE tasks SET open_model_call = NULL, credits = ${cappedSum("credits", "$3")}, input_tokens = input_tokens + $4,
       output_tokens = output_tokens + $5, steps = steps + $6 WHERE workspace_id = $1 AND id = $2`,
    [workspaceId, id, charge.credits, charge.inputTokens, charge.outputTokens, charge.steps],
  );
}

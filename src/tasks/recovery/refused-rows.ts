import type { ProvenTask } from "../../ledger/reading/proven-task.ts";
import type { Tx } from "../../store/db.ts";
import type { TaskEnd } from "../rows/tasks.ts";

/**
 * Closes the row of a task that must not run and whose end is not written to the ledger. The row then claims nothing
 * that the ledger does not contain.
 */
export function closeRow(
  tx: Tx,
  workspaceId: number,
  id: string,
  end: Omit<TaskEnd, "finishSeq" | "error"> & {
    readonly finishSeq: number | null;
    readonly error: { readonly code: string; readonly message: string } | null;
  },
): void {
  tx.write(
    `UPDATE tasks SET status = $3, error_code = $4, error_message = $5, finish_seq = $6, finished_at = $7,
       open_model_call = NULL, seal = NULL WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL`,
    [
      workspaceId,
      id,
      end.status,
      end.error?.code ?? null,
      end.error?.message ?? null,
      end.finishSeq,
      end.finishedAt,
    ],
  );
}

/**
 * Overwrites the rows of a task with the ledger's values. Afterwards, its open calls are also open in the rows.
 * @param agentId null to keep the stored one
 */
export function restoreRows(
  tx: Tx,
  workspaceId: number,
  id: string,
  { dispatch, usage, model, calls }: ProvenTask,
  agentId: number | null,
): void {
  tx.write(
    `UPDATE tasks SET agent = COALESCE($3, agent), tier = $4, created_by = $5,
       dispatch_seq = $6, credits = $7, input_tokens = $8, output_tokens = $9, steps = $10, model = $11,
       open_model_call = NULL, open_reserved = 0, status = 'queued', seal = NULL
     WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL`,
    [
      ...[workspaceId, id, dispatch?.agent ?? null, dispatch?.tier ?? 1, dispatch?.actor ?? "system"],
      ...[dispatch?.seq ?? 0, usage.credits, usage.inputTokens, usage.outputTokens, usage.steps, model],
    ],
  );
  // Not written directly: the agent that it names may not exist, and a foreign key would refuse it.
  if (agentId !== null) {
    const change =
      "UPDATE tasks SET agent_id = $3 WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL";
    tx.write(change, [workspaceId, id, agentId]);
  }
  tx.write("DELETE FROM tool_calls WHERE workspace_id = $1 AND task_id = $2", [workspaceId, id]);
  for (const [position, call] of calls.entries()) {
    const { seq, outcomeSeq, status, price, tool = "", at = "" } = call;
    tx.write(
      `INSERT INTO tool_calls (workspace_id, task_id, position, id, tool, status, intent_seq, outcome_seq, started_at, price)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      [
        ...[workspaceId, id, position, call.id ?? `call_${seq}`, tool, status, seq, outcomeSeq],
        ...[Date.parse(at), price],
      ],
    );
  }
}

import type { ToolStatus } from "../../agents/index.ts";
import type { Sql, Tx } from "../../store/db.ts";
import type { ToolCallRecord } from "../task.ts";

interface ToolRow {
  readonly task_id: string;
  readonly id: string;
  readonly tool: string;
  readonly arguments: string | null;
  readonly status: ToolStatus;
  readonly intent_seq: number;
  readonly outcome_seq: number | null;
  readonly started_at: number;
  readonly duration_ms: number | null;
  readonly price: number;
}

/**
 * Records a tool call before it is made. It is `unknown` until its result is recorded, even if the process dies. A
 * call that is repeated after an earlier process died keeps its row.
 */
export async function insertToolCall(
  tx: Tx,
  workspaceId: number,
  taskId: string,
  call: Pick<ToolCallRecord, "id" | "tool" | "intentSeq" | "startedAt" | "status" | "price">,
): Promise<void> {
  const again = await tx.run(
    `UPDATE tool_calls SET status = $4, intent_seq = $5, outcome_seq = NULL, started_at = $6, duration_ms = NULL,
       price = $7 WHERE workspace_id = $1 AND task_id = $2 AND id = $3`,
    [workspaceId, taskId, call.id, call.status, call.intentSeq, call.startedAt, call.price],
  );
  if (again > 0) return;
  tx.write(
    `INSERT INTO tool_calls (workspace_id, task_id, position, id, tool, status, intent_seq, started_at, price)
     SELECT $1, $2, COUNT(*), $3, $4, $5, $6, $7, $8 FROM tool_calls WHERE workspace_id = $1 AND task_id = $2`,
    [workspaceId, taskId, call.id, call.tool, call.status, call.intentSeq, call.startedAt, call.price],
  );
}

/** Records that a call was lost in flight. `outcomeSeq` is the entry for it. */
export function markCallLost(
  tx: Tx,
  workspaceId: number,
  taskId: string,
  intentSeq: number,
  outcomeSeq: number,
): void {
  tx.write(
    "UPDATE tool_calls SET outcome_seq = $4 WHERE workspace_id = $1 AND task_id = $2 AND intent_seq = $3",
    [workspaceId, taskId, intentSeq, outcomeSeq],
  );
}

/** Records the result of a call. Its text is the output of the entry `outcomeSeq`. */
export function finishToolCall(
  tx: Tx,
  workspaceId: number,
  taskId: string,
  callId: string,
  end: { readonly status: ToolStatus; readonly outcomeSeq: number; readonly durationMs: number },
): void {
  tx.write(
    `UPDATE tool_calls SET status = $4, outcome_seq = $5, duration_ms = $6
     WHERE workspace_id = $1 AND task_id = $2 AND id = $3`,
    [workspaceId, taskId, callId, end.status, end.outcomeSeq, end.durationMs],
  );
}

/** The tool calls of some tasks, in order, by the task. */
export async function toolsCalled(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  taskIds: readonly string[],
): Promise<ReadonlyMap<string, ToolCallRecord[]>> {
  if (taskIds.length === 0) return new Map();
  const rows = await sql.all<ToolRow>(
    `SELECT c.task_id, c.id, c.tool, p.body AS arguments, c.status, c.intent_seq, c.outcome_seq,
       c.started_at, c.duration_ms, c.price
     FROM tool_calls c
     LEFT JOIN payloads p ON p.workspace_id = c.workspace_id AND p.seq = c.intent_seq AND p.kind = 'input'
     WHERE c.workspace_id = $1 AND c.task_id IN (${taskIds.map((_, index) => `$${index + 2}`).join(", ")})
     ORDER BY c.task_id, c.position`,
    [workspaceId, ...taskIds],
  );
  const byTask = new Map<string, ToolCallRecord[]>();
  for (const row of rows) {
    const calls = byTask.get(row.task_id) ?? [];
    calls.push({
      id: row.id,
      tool: row.tool,
      arguments: row.arguments === null ? null : (JSON.parse(row.arguments) as unknown),
      status: row.status,
      intentSeq: row.intent_seq,
      outcomeSeq: row.outcome_seq,
      startedAt: row.started_at,
      durationMs: row.duration_ms,
      price: row.price,
    });
    byTask.set(row.task_id, calls);
  }
  return byTask;
}

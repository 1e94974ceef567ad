import { isHashOf } from "../../ledger/payload.ts";
import { type ProvenTask, taskDifference } from "../../ledger/reading/proven-task.ts";
import type { Sql } from "../../store/db.ts";
import { findSealedTask } from "../rows/tasks.ts";
import { areAnswersProven } from "../run/progress.ts";
import type { Task } from "../task.ts";

/**
 * `trusted`: this server wrote the rows, and they agree with the ledger. `ended`: the ledger contains the task's end.
 * `unknown`: the ledger contains no dispatch of the task. `changed`: it does, but the rows differ from what was
 * written.
 */
export type StoredTaskState = "trusted" | "ended" | "unknown" | "changed";

type TaskReads = Pick<Sql, "all" | "get" | "seals">;

/**
 * Decides whether a task that is open in the store may be resumed after a restart. Its seal covers its rights and its
 * owner. The ledger shows that it was dispatched, that it has not ended, which calls it made and what they cost.
 * Texts are compared with the hashes in their entries.
 */
export async function checkStoredTask(
  sql: TaskReads,
  workspaceId: number,
  id: string,
  proven: ProvenTask | undefined,
): Promise<StoredTaskState> {
  const dispatch = proven?.dispatch;
  if (!proven || !dispatch) return "unknown";
  if (proven.end) return "ended";
  const task = await findSealedTask(sql, workspaceId, id);
  if (!task || taskDifference(task, proven) !== null) return "changed";
  const isIntact =
    (await isText(sql, workspaceId, { seq: dispatch.seq, kind: "input" }, dispatch.input_hash)) &&
    (await areResultsIntact(sql, task, proven)) &&
    (await areAnswersProven(sql, task, proven));
  return isIntact ? "trusted" : "changed";
}

async function areResultsIntact(sql: TaskReads, task: Task, { outcomes }: ProvenTask): Promise<boolean> {
  for (const { outcomeSeq } of task.toolsCalled) {
    if (outcomeSeq === null) continue;
    const hash = outcomes.get(outcomeSeq)?.output_hash;
    if (!(await isText(sql, task.workspaceId, { seq: outcomeSeq, kind: "output" }, hash))) return false;
  }
  return true;
}

/** Whether a text matches the hash in its entry. An erased text does. */
export async function isText(
  sql: TaskReads,
  workspaceId: number,
  { seq, kind }: { readonly seq: number; readonly kind: "input" | "output" },
  hash: string | undefined,
): Promise<boolean> {
  const text = await sql.get<{ salt: Uint8Array; body: string }>(
    "SELECT salt, body FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
    [workspaceId, seq, kind],
  );
  return text === undefined || isHashOf(hash, text.salt, text.body);
}

import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import { inListSql, listsOf } from "../../store/common-sql.ts";
import type { TaskParts } from "../parts.ts";

type HiddenTaskParts = Pick<TaskParts, "db" | "claims" | "ledger" | "lists">;

/**
 * Finds tasks that the ledger shows as dispatched and unfinished although their rows are missing or marked as
 * finished. Someone has hidden those rows from the usual check. Such a row is opened again, and then checked like any
 * other open task. A task without a row ends as failed.
 * @param dispatched the tasks, with the entries that dispatched them
 * @throws LedgerChanged
 */
export async function openHiddenTasks(
  parts: HiddenTaskParts,
  workspaceId: number,
  dispatched: ReadonlyMap<string, number>,
): Promise<void> {
  const { db } = parts;
  const open = new Map(dispatched);
  if (open.size === 0) return;
  const rows: { readonly id: string; readonly finished_at: number | null }[] = [];
  for (const ids of listsOf([...open.keys()])) {
    rows.push(
      ...(await db.all<{ id: string; finished_at: number | null }>(
        `SELECT id, finished_at FROM tasks WHERE workspace_id = $1 AND ${inListSql("id", 2)}`,
        [workspaceId, ...ids],
      )),
    );
  }
  for (const { id, finished_at } of rows) {
    open.delete(id);
    if (finished_at === null) continue;
    db.seals.report("tasks", { workspace_id: workspaceId, id });
    await db.run(
      `UPDATE tasks SET finished_at = NULL, finish_seq = NULL, error_code = NULL, error_message = NULL,
         status = CASE WHEN status IN ('queued', 'running', 'awaiting_approval') THEN status
           WHEN started_at IS NULL THEN 'queued' ELSE 'running' END
       WHERE workspace_id = $1 AND id = $2`,
      [workspaceId, id],
    );
  }
  for (const [id, seq] of open) await endMissing(parts, workspaceId, id, seq);
}

async function endMissing(
  { db, claims, ledger, lists }: HiddenTaskParts,
  workspaceId: number,
  id: string,
  ref: number,
): Promise<void> {
  const dispatch = await lists.entry(workspaceId, ref);
  if (!dispatch) return;
  const { actor = "system", agent, tier } = parsedEntry(dispatch.bytes);
  db.seals.report("tasks", { workspace_id: workspaceId, id });
  await db.tx(workspaceId, async (tx) => {
    claims.end(tx, workspaceId, id);
    await ledger.append(tx, workspaceId, {
      ...{ phase: "outcome", ref, action: "task.dispatch", outcome: "failed", code: "internal" },
      ...{ channel: "system", actor, agent, tier, task: id },
    });
  });
}

import { optionalTimestamp, timestamp } from "../../base/clock.ts";
import { toCredits } from "../../base/credits.ts";
import type { FeedEvent, WorkspaceUsage } from "../../feed/events.ts";
import type { Sql } from "../../store/db.ts";
import type { Scheduler } from "../queue/scheduler.ts";
import type { TaskErrorCode, TaskStatus } from "../task.ts";

/** The maximum number of rows requested in one query. */
const AT_ONCE = 500;

interface FeedTaskRow {
  readonly id: string;
  readonly agent_id: number;
  readonly agent: string;
  readonly tier: number;
  readonly status: TaskStatus;
  readonly model: string | null;
  readonly credits: number;
  readonly steps: number;
  readonly error_code: TaskErrorCode | null;
  readonly created_by: string;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
}

/** Tasks for a workspace's feed, as stored but without prompts, outputs and arguments. */
export async function taskChanges(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  ids: readonly string[],
): Promise<FeedEvent[]> {
  const rows = await inParts<FeedTaskRow>(ids, (part, list) =>
    sql.all(
      `SELECT id, agent_id, agent, tier, status, model, credits, steps, error_code, created_by, created_at, started_at,
         finished_at FROM tasks WHERE workspace_id = $1 AND id IN (${list})`,
      [workspaceId, ...part],
    ),
  );
  return rows.map((row) => ({
    name: "task.changed",
    key: row.id,
    agent: row.agent_id,
    data: {
      id: row.id,
      agent: row.agent,
      tier: row.tier,
      status: row.status,
      model: row.model,
      credits_consumed: toCredits(row.credits),
      steps: row.steps,
      error: row.error_code === null ? null : { code: row.error_code },
      created_by: row.created_by,
      created_at: timestamp(row.created_at),
      started_at: optionalTimestamp(row.started_at),
      finished_at: optionalTimestamp(row.finished_at),
    },
  }));
}

interface ApprovalRow {
  readonly task_id: string;
  readonly call_id: string;
  readonly agent_id: number;
  readonly agent: string;
  readonly tool: string;
  readonly status: string;
}

/** A feed's key for an approval. */
export function approvalKey(task: string, callId: string): string {
  return `${task} ${callId}`;
}

/** Approvals for a workspace's feed, by `approvalKey`. */
export async function approvalChanges(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  keys: readonly string[],
): Promise<FeedEvent[]> {
  const wanted = new Set(keys);
  const tasks = [...new Set(keys.map((key) => key.slice(0, key.indexOf(" "))))];
  const rows = await inParts<ApprovalRow>(tasks, (part, list) =>
    sql.all(
      `SELECT a.task_id, a.call_id, t.agent_id, a.agent, a.tool, a.status FROM approvals a
       JOIN tasks t ON t.workspace_id = a.workspace_id AND t.id = a.task_id
       WHERE a.workspace_id = $1 AND a.task_id IN (${list})`,
      [workspaceId, ...part],
    ),
  );
  return rows.flatMap(({ task_id: task, call_id, agent_id, agent, tool, status }): FeedEvent[] => {
    const key = approvalKey(task, call_id);
    const data = { task, call_id, agent, tool, status };
    return wanted.has(key) ? [{ name: "approval.changed", key, agent: agent_id, data }] : [];
  });
}

/** The number of pending approvals of a workspace or of one of its agents. */
export async function approvalsPending(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  agent: { readonly id: number } | null,
): Promise<number> {
  const all =
    "SELECT COUNT(*) AS pending FROM approvals a WHERE a.workspace_id = $1 AND a.status = 'pending'";
  const row = agent
    ? await sql.get<{ pending: number }>(
        `${all} AND EXISTS (SELECT 1 FROM tasks t
           WHERE t.workspace_id = a.workspace_id AND t.id = a.task_id AND t.agent_id = $2)`,
        [workspaceId, agent.id],
      )
    : await sql.get<{ pending: number }>(all, [workspaceId]);
  return row?.pending ?? 0;
}

/** The number of running and waiting tasks of a workspace or of one of its agents. */
export function taskUsage(
  scheduler: Pick<Scheduler, "running" | "waiting" | "runningOf" | "waitingOf">,
  workspaceId: number,
  agent: { readonly id: number } | null,
): Pick<WorkspaceUsage, "tasks_running" | "tasks_queued"> {
  if (!agent) {
    return { tasks_running: scheduler.running(workspaceId), tasks_queued: scheduler.waiting(workspaceId) };
  }
  return {
    tasks_running: scheduler.runningOf(workspaceId, agent.id).length,
    tasks_queued: scheduler.waitingOf(workspaceId, agent.id).length,
  };
}

/** Like `taskUsage`, for the tasks of all nodes. */
export async function sharedTaskUsage(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  agent: { readonly id: number } | null,
): Promise<Pick<WorkspaceUsage, "tasks_running" | "tasks_queued">> {
  const rows = await sql.all<{ agentId: number; status: TaskStatus; count: number }>(
    `SELECT agent_id AS "agentId", status, COUNT(*) AS count FROM tasks
     WHERE workspace_id = $1 AND finished_at IS NULL GROUP BY agent_id, status`,
    [workspaceId],
  );
  const count = (wanted: TaskStatus) =>
    rows
      .filter(({ agentId, status }) => status === wanted && (agent === null || agentId === agent.id))
      .reduce((sum, row) => sum + row.count, 0);
  return { tasks_running: count("running"), tasks_queued: count("queued") };
}

/** `query` receives some of the keys, and their placeholders in its statement, starting with $2. */
async function inParts<Row>(
  keys: readonly string[],
  query: (part: readonly string[], list: string) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let from = 0; from < keys.length; from += AT_ONCE) {
    const part = keys.slice(from, from + AT_ONCE);
    rows.push(...(await query(part, part.map((_, index) => `$${index + 2}`).join(", "))));
  }
  return rows;
}

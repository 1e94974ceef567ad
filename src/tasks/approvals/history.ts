import type { Sql, SqlValue } from "../../store/db.ts";
import { fitting } from "../../store/page-bytes.ts";
import { type ApprovalStatus, findApprovals, type StoredApproval } from "./rows.ts";

/** Conditions on the approvals of one workspace. All given conditions must be met. */
export interface ApprovalFilter {
  /** Any of these; at least one. */
  readonly statuses: readonly ApprovalStatus[];
  readonly agent?: string | undefined;
  /**
   * The agent that the caller acts as. It sees only that agent's approvals, not those of an earlier agent with the
   * same name.
   */
  readonly agentId?: number | undefined;
  readonly tool?: string | undefined;
  readonly task?: string | undefined;
}

export interface ApprovalPage {
  readonly approvals: readonly StoredApproval[];
  /** Whether there are more. */
  readonly more: boolean;
}

/**
 * Lists approvals, newest first, starting before the entry `before`. Returns fewer than `limit` if their texts would
 * be too long for one response.
 */
export async function listApprovals(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  filter: ApprovalFilter,
  limit: number,
  before: number | undefined,
): Promise<ApprovalPage> {
  const found = await chooseApprovals(sql, workspaceId, filter, limit + 1, before);
  const shown = fitting(found, limit, ({ bytes }) => bytes);
  const more = shown.length < found.length;
  if (shown.length === 0) return { approvals: [], more };
  const approvals = await findApprovals(
    sql,
    workspaceId,
    shown.map(({ task_id, call_id }) => ({ taskId: task_id, callId: call_id })),
  );
  return { approvals, more };
}

interface ApprovalKeyRow {
  readonly task_id: string;
  readonly call_id: string;
  /** The size of its texts, which SQLite knows without reading them. */
  readonly bytes: number;
}

/**
 * Except for `task`, each combination of filters has an index in its own order (`012-lists.ts`), so nothing is
 * scanned or sorted. If several statuses are requested, each is read from its own part of the index, and the results
 * are merged.
 */
export async function chooseApprovals(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  { statuses, agent, agentId, tool, task }: ApprovalFilter,
  count: number,
  before = Number.MAX_SAFE_INTEGER,
): Promise<ApprovalKeyRow[]> {
  const values: SqlValue[] = [workspaceId, before, count];
  const equals = (column: string, value: SqlValue | undefined) =>
    value === undefined ? "" : ` AND ${column} = $${values.push(value)}`;
  const rest =
    equals("a.agent", agent) +
    equals("a.tool", tool) +
    equals("a.task_id", task) +
    (agentId === undefined
      ? ""
      : ` AND EXISTS (SELECT 1 FROM tasks AS t
            WHERE t.workspace_id = $1 AND t.id = a.task_id${equals("t.agent_id", agentId)})`);
  const select = (status: string) =>
    `SELECT a.pending_seq, a.task_id, a.call_id, a.arguments_seq, a.decision_seq FROM approvals AS a
       WHERE a.workspace_id = $1 AND a.pending_seq < $2${rest} AND ${status}`;
  const literals = statuses.map((status) => `'${status}'`);
  // A task has few approvals, so they are read by the primary key. The planner would otherwise choose the index of
  // all approvals with the status.
  const chosen =
    task === undefined
      ? literals.map((status) => select(`a.status = ${status}`)).join(" UNION ALL ")
      : select(`CASE WHEN a.status IN (${literals.join(", ")}) THEN 1 ELSE 0 END = 1`);
  return sql.all<ApprovalKeyRow>(
    `SELECT c.task_id, c.call_id,
       COALESCE((SELECT octet_length(p.body) FROM payloads AS p
         WHERE p.workspace_id = $1 AND p.seq = c.arguments_seq AND p.kind = 'input'), 0)
       + COALESCE((SELECT octet_length(p.body) FROM payloads AS p
         WHERE p.workspace_id = $1 AND p.seq = c.decision_seq AND p.kind = 'output'), 0) AS bytes
     FROM (${chosen} ORDER BY pending_seq DESC LIMIT $3) AS c ORDER BY c.pending_seq DESC`,
    values,
  );
}

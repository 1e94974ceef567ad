import type { Db, Sql, SqlValue } from "../../store/db.ts";
import { fitting, PAGE_BYTES } from "../../store/page-bytes.ts";
import type { TaskStatus } from "../task.ts";

export interface TaskFilter {
  readonly agent?: string | undefined;
  /** The agent that the caller acts as. It sees only that agent's tasks. */
  readonly agentId?: number | undefined;
  readonly status?: TaskStatus | undefined;
}

/** The ids of one page. `more`: there are further pages. */
export interface TaskIdPage {
  readonly ids: readonly string[];
  readonly more: boolean;
}

/** How many tasks' sizes are read at once. More are read only if the page is not full. */
const SIZES_AT_ONCE = 20;
/** A tool call without its arguments, as a list shows it. */
const CALL_BYTES = 256;

/** SQLite uses a partial index only if its condition appears literally in the query. */
const OPEN = "finished_at IS NULL";
const ENDED = "finished_at IS NOT NULL";
const STATUS_CONDITION: Record<TaskStatus, { readonly ended: boolean; readonly sql: string }> = {
  queued: { ended: false, sql: `${OPEN} AND status = 'queued'` },
  running: { ended: false, sql: `${OPEN} AND status = 'running'` },
  awaiting_approval: { ended: false, sql: `${OPEN} AND status = 'awaiting_approval'` },
  succeeded: { ended: true, sql: `${ENDED} AND status = 'succeeded'` },
  failed: { ended: true, sql: `${ENDED} AND status = 'failed'` },
  cancelled: { ended: true, sql: `${ENDED} AND status = 'cancelled'` },
};

/**
 * The ids of matching tasks, newest first, before the id `before`: at most `limit`, and no more than `PAGE_BYTES`
 * allow, but at least one.
 */
export async function chooseTasks(
  db: Db,
  workspaceId: number,
  filter: TaskFilter,
  limit: number,
  before: string | undefined,
): Promise<TaskIdPage> {
  const found = await matching(db, workspaceId, filter, limit + 1, before ?? "task~");
  const sizes = new Map<string, number>();
  let bytes = 0;
  for (let at = 0; at < Math.min(found.length, limit) && bytes <= PAGE_BYTES; at += SIZES_AT_ONCE) {
    const some = await taskSizes(db, workspaceId, found.slice(at, Math.min(at + SIZES_AT_ONCE, limit)));
    for (const [id, size] of some) {
      sizes.set(id, size);
      bytes += size;
    }
  }
  const ids = fitting(found, limit, (id) => sizes.get(id) ?? 0);
  return { ids, more: ids.length < found.length };
}

/** Reads no texts. Each combination of filters has an index in its own order, so nothing is scanned or sorted. */
async function matching(
  db: Db,
  workspaceId: number,
  { agent, agentId, status }: TaskFilter,
  count: number,
  before: string,
): Promise<string[]> {
  if (agent === undefined && agentId === undefined)
    return page(db, workspaceId, undefined, status, count, before);
  // If a name was freed and reused, it belongs to several agents. Their tasks are merged, each from its own index.
  const agents = await agentIds(db, workspaceId, agent, agentId);
  const pages: string[][] = [];
  for (const id of agents) pages.push(await page(db, workspaceId, id, status, count, before));
  return pages
    .flat()
    .sort((a, b) => (a < b ? 1 : -1))
    .slice(0, count);
}

async function agentIds(
  db: Db,
  workspaceId: number,
  name: string | undefined,
  id: number | undefined,
): Promise<number[]> {
  if (name === undefined) return id === undefined ? [] : [id];
  const rows = await db.all<{ id: number }>("SELECT id FROM agents WHERE workspace_id = $1 AND name = $2", [
    workspaceId,
    name,
  ]);
  return rows.map((row) => row.id).filter((each) => id === undefined || each === id);
}

async function page(
  db: Db,
  workspaceId: number,
  agentId: number | undefined,
  status: TaskStatus | undefined,
  count: number,
  before: string,
): Promise<string[]> {
  const conditions = ["workspace_id = $1", "id < $2"];
  const values: SqlValue[] = [workspaceId, before, count];
  const wanted = status && STATUS_CONDITION[status];
  if (agentId !== undefined) {
    values.push(agentId);
    // There are never many open tasks, so their index is read as a whole rather than the agent's entire history.
    conditions.push(wanted?.ended === false ? "+agent_id = $4" : "agent_id = $4");
  }
  if (wanted) conditions.push(wanted.sql);
  const rows = await db.all<{ id: string }>(
    `SELECT id FROM tasks WHERE ${conditions.join(" AND ")} ORDER BY id DESC LIMIT $3`,
    values,
  );
  return rows.map((row) => row.id);
}

/**
 * The size in bytes of those parts of each task whose length clients control. SQLite knows the lengths without
 * reading the texts, because the tables have a rowid and the texts are in the last columns.
 */
async function taskSizes(
  db: Pick<Sql, "all">,
  workspaceId: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await db.all<{ id: string; bytes: number }>(
    `SELECT t.id, octet_length(t.metadata) + octet_length(t.tools)
       + COALESCE((SELECT octet_length(i.body) FROM payloads i
           WHERE i.workspace_id = t.workspace_id AND i.seq = t.dispatch_seq AND i.kind = 'input'), 0)
       + COALESCE((SELECT octet_length(o.body) FROM payloads o
           WHERE o.workspace_id = t.workspace_id AND o.seq = t.finish_seq AND o.kind = 'output'), 0)
       + COALESCE((SELECT SUM(COALESCE(octet_length(p.body), 0) + ${CALL_BYTES}) FROM tool_calls c LEFT JOIN payloads p
           ON p.workspace_id = c.workspace_id AND p.seq = c.intent_seq AND p.kind = 'input'
           WHERE c.workspace_id = t.workspace_id AND c.task_id = t.id), 0) AS bytes
     FROM tasks t WHERE t.workspace_id = $1 AND t.id IN (${ids.map((_, index) => `$${index + 2}`).join(", ")})`,
    [workspaceId, ...ids],
  );
  return new Map(rows.map(({ id, bytes }) => [id, bytes]));
}

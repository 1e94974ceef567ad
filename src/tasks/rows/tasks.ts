import type { Db, Sql, Tx } from "../../store/db.ts";
import { type InputForm, readInput } from "../input/task-input.ts";
import type { Task, TaskErrorCode, TaskFacts, ToolCallRecord } from "../task.ts";
import type { OpenModelCall } from "./charges.ts";
import { chooseTasks, type TaskFilter } from "./task-ids.ts";
import { toolsCalled } from "./tool-calls.ts";

interface FactsRow
  extends Pick<
    Task,
    "id" | "agent" | "tier" | "continues" | "status" | "attempts" | "model" | "credits" | "steps"
  > {
  readonly agent_id: number;
  readonly input_form: InputForm;
  readonly tools: string;
  readonly metadata: string;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly error_code: TaskErrorCode | null;
  readonly error_message: string | null;
  readonly dispatch_seq: number;
  readonly open_model_call: number | null;
  readonly open_reserved: number;
  readonly event_ceiling: number;
  readonly created_by: string;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  readonly workspace_id: number;
  readonly seal: Uint8Array | null;
}

interface TaskRow extends FactsRow {
  readonly input: string | null;
  readonly output: string | null;
  readonly has_calls: number | boolean;
}

const FACTS = `t.workspace_id, t.id, t.seal, t.agent_id, t.agent, t.tier, t.tools, t.metadata, t.input_form, t.continues, t.status, t.attempts,
  t.model, t.credits, t.input_tokens, t.output_tokens, t.steps, t.error_code, t.error_message,
  t.dispatch_seq, t.open_model_call, t.open_reserved, t.event_ceiling, t.created_by, t.created_at, t.started_at, t.finished_at`;

/**
 * The texts are read by subqueries: SQLite took 100 µs instead of 12 for the same rows with joins. Most tasks have
 * not called tools, and `has_calls` saves the query for their calls.
 */
const COLUMNS = `${FACTS},
  (SELECT i.body FROM payloads i
    WHERE i.workspace_id = t.workspace_id AND i.seq = t.dispatch_seq AND i.kind = 'input') AS input,
  (SELECT o.body FROM payloads o
    WHERE o.workspace_id = t.workspace_id AND o.seq = t.finish_seq AND o.kind = 'output') AS output,
  EXISTS (SELECT 1 FROM tool_calls c WHERE c.workspace_id = t.workspace_id AND c.task_id = t.id) AS has_calls`;
const SELECT = `SELECT ${COLUMNS} FROM tasks t`;

/** Like `findTask`, without texts, which may be megabytes long. */
export async function findTaskFacts(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  id: string,
): Promise<TaskFacts | undefined> {
  const row = await sql.get<FactsRow>(
    `SELECT ${FACTS} FROM tasks t WHERE t.workspace_id = $1 AND t.id = $2`,
    [workspaceId, id],
  );
  return row && factsOf(workspaceId, row);
}

export async function findTask(
  sql: Pick<Sql, "all" | "get">,
  workspaceId: number,
  id: string,
): Promise<Task | undefined> {
  const row = await sql.get<TaskRow>(`${SELECT} WHERE t.workspace_id = $1 AND t.id = $2`, [workspaceId, id]);
  return row && withCalls(sql, workspaceId, row);
}

/** A task that is about to end, and what else its end has to change. */
export interface EndingTask {
  readonly task: Task;
  /** Whether answers are stored that only a task in progress needs. */
  readonly hasAnswers: boolean;
  /** Whether approvals are pending. */
  readonly isAwaited: boolean;
}

interface EndingRow extends TaskRow {
  readonly has_answers: number | boolean;
  readonly is_awaited: number | boolean;
}

const SELECT_ENDING = `SELECT ${COLUMNS},
  EXISTS (SELECT 1 FROM task_answers a WHERE a.workspace_id = t.workspace_id AND a.task_id = t.id) AS has_answers,
  EXISTS (SELECT 1 FROM approvals p
    WHERE p.workspace_id = t.workspace_id AND p.task_id = t.id AND p.status = 'pending') AS is_awaited
  FROM tasks t WHERE t.workspace_id = $1 AND t.id = $2`;

export async function findEndingTask(
  sql: Pick<Sql, "all" | "get">,
  workspaceId: number,
  id: string,
): Promise<EndingTask | undefined> {
  const row = await sql.get<EndingRow>(SELECT_ENDING, [workspaceId, id]);
  if (!row) return undefined;
  const task = await withCalls(sql, workspaceId, row);
  return { task, hasAnswers: Boolean(row.has_answers), isAwaited: Boolean(row.is_awaited) };
}

/** Like `findTask`, but undefined if this server did not write the row. Use before running a task. */
export async function findSealedTask(
  sql: Pick<Sql, "all" | "get" | "seals">,
  workspaceId: number,
  id: string,
): Promise<Task | undefined> {
  const row = await sql.get<TaskRow>(`${SELECT} WHERE t.workspace_id = $1 AND t.id = $2`, [workspaceId, id]);
  return row && sql.seals.fits("tasks", row) ? withCalls(sql, workspaceId, row) : undefined;
}

async function withCalls(sql: Pick<Sql, "all">, workspaceId: number, row: TaskRow): Promise<Task> {
  const calls = row.has_calls ? await toolsCalled(sql, workspaceId, [row.id]) : undefined;
  return fromRow(workspaceId, row, calls?.get(row.id) ?? []);
}

/** The entry that ended a finished task. */
export async function lastSeq(
  sql: Pick<Sql, "get">,
  { workspaceId, id }: Pick<Task, "workspaceId" | "id">,
): Promise<number> {
  const row = await sql.get<{ finish_seq: number | null }>(
    "SELECT finish_seq FROM tasks WHERE workspace_id = $1 AND id = $2",
    [workspaceId, id],
  );
  return row?.finish_seq ?? Number.MAX_SAFE_INTEGER;
}

/** One page of a list. `more`: there are further pages. */
export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly more: boolean;
}

/** Newest first, before the id `before`. Fewer than `limit` if their texts would be too long for one response. */
export async function listTasks(
  db: Db,
  workspaceId: number,
  filter: TaskFilter,
  limit: number,
  before: string | undefined,
): Promise<TaskPage> {
  const { ids, more } = await chooseTasks(db, workspaceId, filter, limit, before);
  if (ids.length === 0) return { tasks: [], more };
  const rows = await db.all<TaskRow>(
    `${SELECT} WHERE t.workspace_id = $1 AND t.id IN (${ids.map((_, index) => `$${index + 2}`).join(", ")})
     ORDER BY t.id DESC`,
    [workspaceId, ...ids],
  );
  const calls = await toolsCalled(db, workspaceId, ids);
  return { tasks: rows.map((row) => fromRow(workspaceId, row, calls.get(row.id) ?? [])), more };
}

export interface NewTask {
  readonly id: string;
  readonly agentId: number;
  readonly agent: string;
  readonly tier: number;
  readonly tools: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly inputForm: InputForm;
  readonly continues: string | null;
  readonly createdBy: string;
  readonly createdAt: number;
}

export function insertTask(tx: Tx, workspaceId: number, task: NewTask, dispatchSeq: number): void {
  const row = {
    workspace_id: workspaceId,
    id: task.id,
    agent_id: task.agentId,
    agent: task.agent,
    tier: task.tier,
    tools: JSON.stringify(task.tools),
    metadata: JSON.stringify(task.metadata),
    dispatch_seq: dispatchSeq,
    created_by: task.createdBy,
    created_at: task.createdAt,
    input_form: task.inputForm,
    continues: task.continues,
  };
  tx.write(
    `INSERT INTO tasks (workspace_id, id, agent_id, agent, tier, tools, metadata, status, attempts, credits,
       input_tokens, output_tokens, steps, dispatch_seq, event_ceiling, created_by, created_at, input_form, continues,
       seal)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', 0, 0, 0, 0, 0, $8, 0, $9, $10, $11, $12, $13)`,
    [
      workspaceId,
      task.id,
      task.agentId,
      task.agent,
      task.tier,
      row.tools,
      row.metadata,
      dispatchSeq,
      task.createdBy,
      task.createdAt,
      task.inputForm,
      task.continues,
      tx.seals.of("tasks", row),
    ],
  );
}

/** From queued to running, with the task's first model call if it begins with one. */
export interface TaskStart {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly eventCeiling: number;
  readonly call?: OpenModelCall | undefined;
}

/** Returns false if the task is no longer queued. */
export async function markRunning(
  tx: Tx,
  workspaceId: number,
  id: string,
  { at, eventCeiling, call }: TaskStart,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE tasks SET status = 'running', attempts = attempts + 1, started_at = COALESCE(started_at,
       CASE WHEN $3 > created_at THEN $3 ELSE created_at END), event_ceiling = $4, open_model_call = $5,
       model = COALESCE($6, model), open_reserved = COALESCE($7, open_reserved)
     WHERE workspace_id = $1 AND id = $2 AND status = 'queued'`,
    [workspaceId, id, at, eventCeiling, call?.seq ?? null, call?.model ?? null, call?.reserved ?? null],
  );
  return changed === 1;
}

/**
 * From running back to queued, after the process that ran it ended. An attempt that a shutdown interrupted does not
 * count.
 */
export function markQueued(tx: Tx, workspaceId: number, id: string, brokenOff: boolean): void {
  tx.write(
    `UPDATE tasks SET status = 'queued', open_model_call = NULL, attempts = attempts - $3
     WHERE workspace_id = $1 AND id = $2 AND status = 'running'`,
    [workspaceId, id, brokenOff ? 1 : 0],
  );
}

/**
 * From running to waiting for a person. The task has not crashed, so resuming it counts as its first start. Returns
 * false if the task is not running.
 */
export async function markAwaiting(tx: Tx, workspaceId: number, id: string): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE tasks SET status = 'awaiting_approval', attempts = attempts - 1
     WHERE workspace_id = $1 AND id = $2 AND status = 'running'`,
    [workspaceId, id],
  );
  return changed === 1;
}

/** From waiting for a person back to queued, after a decision. Returns false if the task is no longer waiting. */
export async function markDecided(tx: Tx, workspaceId: number, id: string): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE tasks SET status = 'queued' WHERE workspace_id = $1 AND id = $2 AND status = 'awaiting_approval'`,
    [workspaceId, id],
  );
  return changed === 1;
}

/** The agent and the status of an unfinished task. */
export async function findOpenTask(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  id: string,
): Promise<Pick<Task, "agentId" | "status"> | undefined> {
  return sql.get<Pick<Task, "agentId" | "status">>(
    `SELECT agent_id AS "agentId", status FROM tasks WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL`,
    [workspaceId, id],
  );
}

export function raiseEventCeiling(tx: Tx, workspaceId: number, id: string, ceiling: number): void {
  tx.write("UPDATE tasks SET event_ceiling = $3 WHERE workspace_id = $1 AND id = $2 AND event_ceiling < $3", [
    workspaceId,
    id,
    ceiling,
  ]);
}

export interface TaskEnd {
  readonly status: "succeeded" | "failed" | "cancelled";
  readonly error: { readonly code: TaskErrorCode; readonly message: string } | null;
  readonly finishSeq: number;
  readonly finishedAt: number;
}

/** The row keeps its seal, which shows who owned the task. Returns false if the task had already ended. */
export async function markFinished(tx: Tx, workspaceId: number, id: string, end: TaskEnd): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE tasks SET status = $3, error_code = $4, error_message = $5, finish_seq = $6, finished_at = $7,
       open_model_call = NULL WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL`,
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
  return changed === 1;
}

function fromRow(workspaceId: number, row: TaskRow, calls: readonly ToolCallRecord[]): Task {
  return {
    ...factsOf(workspaceId, row),
    input: row.input === null ? null : readInput({ form: row.input_form, text: row.input }),
    output: row.output,
    toolsCalled: calls,
  };
}

function factsOf(workspaceId: number, row: FactsRow): TaskFacts {
  return {
    workspaceId,
    id: row.id,
    agentId: row.agent_id,
    agent: row.agent,
    tier: row.tier,
    inputForm: row.input_form,
    continues: row.continues,
    tools: JSON.parse(row.tools) as string[],
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    status: row.status,
    attempts: row.attempts,
    model: row.model,
    credits: row.credits,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    steps: row.steps,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? "" },
    dispatchSeq: row.dispatch_seq,
    openModelCall: row.open_model_call,
    openReserved: row.open_reserved,
    eventCeiling: row.event_ceiling,
    createdBy: row.created_by,
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  };
}

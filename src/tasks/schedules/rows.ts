import { isId } from "../../base/ids.ts";
import type { Db, Sql, Tx } from "../../store/db.ts";
import { fitting } from "../../store/page-bytes.ts";
import type { Schedule, ScheduleRunResult, ScheduleStatus } from "./schedule.ts";

interface ScheduleRow
  extends Pick<
    Schedule,
    "id" | "name" | "agent" | "prompt" | "cron" | "timezone" | "tier" | "missed" | "status" | "version"
  > {
  readonly workspace_id: number;
  readonly tools: string;
  readonly metadata: string;
  readonly created_by: string;
  readonly runs_as: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly next_at: number | null;
  readonly last_at: number | null;
  readonly last_task: string | null;
  readonly last_code: string | null;
  readonly agent_id: number | null;
  readonly seal: Uint8Array | null;
}

const COLUMNS = `workspace_id, id, name, agent, prompt, cron, timezone, tier, tools, metadata, missed, status, version,
  created_by, runs_as, created_at, updated_at, next_at, last_at, last_task, last_code, agent_id, seal`;

export async function countSchedules(sql: Sql, workspaceId: number): Promise<number> {
  const row = await sql.get<{ count: number }>(
    "SELECT COUNT(*) AS count FROM schedules WHERE workspace_id = $1",
    [workspaceId],
  );
  return row?.count ?? 0;
}

export async function insertSchedule(tx: Tx, schedule: Schedule): Promise<void> {
  tx.write(
    `INSERT INTO schedules (workspace_id, id, name, agent, prompt, cron, timezone, tier, tools, metadata, missed, status,
       version, created_by, runs_as, created_at, updated_at, next_at, agent_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
    [
      schedule.workspaceId,
      schedule.id,
      schedule.name,
      schedule.agent,
      schedule.prompt,
      schedule.cron,
      schedule.timezone,
      schedule.tier,
      JSON.stringify(schedule.tools),
      JSON.stringify(schedule.metadata),
      schedule.missed,
      schedule.status,
      schedule.version,
      schedule.createdBy,
      schedule.runsAs,
      schedule.createdAt,
      schedule.updatedAt,
      schedule.nextAt,
      schedule.agentId,
    ],
  );
  await tx.seals.seal(tx, "schedules", keyOf(schedule));
}

/**
 * Writes the fields that a change may affect. The result of the last run is unchanged.
 * @throws SealBroken
 */
export function updateSchedule(tx: Tx, schedule: Schedule): Promise<number> {
  return tx.seals.change(tx, "schedules", keyOf(schedule), () => writeSchedule(tx, schedule));
}

function writeSchedule(tx: Tx, schedule: Schedule): Promise<number> {
  return tx.run(
    `UPDATE schedules SET name = $3, agent = $4, prompt = $5, cron = $6, timezone = $7, tier = $8, tools = $9,
       metadata = $10, missed = $11, status = $12, version = $13, runs_as = $14, updated_at = $15, next_at = $16,
       agent_id = $17
     WHERE workspace_id = $1 AND id = $2`,
    [
      schedule.workspaceId,
      schedule.id,
      schedule.name,
      schedule.agent,
      schedule.prompt,
      schedule.cron,
      schedule.timezone,
      schedule.tier,
      JSON.stringify(schedule.tools),
      JSON.stringify(schedule.metadata),
      schedule.missed,
      schedule.status,
      schedule.version,
      schedule.runsAs,
      schedule.updatedAt,
      schedule.nextAt,
      schedule.agentId,
    ],
  );
}

export function deleteSchedule(tx: Tx, workspaceId: number, id: string): void {
  tx.write("DELETE FROM schedules WHERE workspace_id = $1 AND id = $2", [workspaceId, id]);
}

export async function findSchedule(sql: Sql, workspaceId: number, id: string): Promise<Schedule | undefined> {
  if (!isId("sch", id)) return undefined;
  const row = await sql.get<ScheduleRow>(
    `SELECT ${COLUMNS} FROM schedules WHERE workspace_id = $1 AND id = $2`,
    [workspaceId, id],
  );
  return row && sql.seals.fits("schedules", row) ? fromRow(row) : undefined;
}

/** One page of a list. */
export interface SchedulePage {
  readonly schedules: readonly Schedule[];
  readonly more: boolean;
}

/**
 * Newest first, before the id `before`. Fewer than `limit` if their texts would be too long for one response. With
 * `agentId`, only that agent's schedules.
 */
export async function listSchedules(
  sql: Sql,
  workspaceId: number,
  limit: number,
  before: string | undefined,
  agentId?: number,
): Promise<SchedulePage> {
  const own = agentId === undefined ? "" : " AND agent_id = $4";
  const matching = `FROM schedules WHERE workspace_id = $1 AND id < $2${own}`;
  const end = before ?? "sch~";
  const owner = agentId === undefined ? [] : [agentId];
  // SQLite knows the sizes without reading the texts, which are in the last columns.
  const found = await sql.all<{ id: string; bytes: number }>(
    `SELECT id, octet_length(prompt) + octet_length(tools) + octet_length(metadata) AS bytes
     ${matching} ORDER BY id DESC LIMIT $3`,
    [workspaceId, end, limit + 1, ...owner],
  );
  const shown = fitting(found, limit, ({ bytes }) => bytes);
  const last = shown.at(-1);
  if (!last) return { schedules: [], more: false };
  const rows = await sql.all<ScheduleRow>(`SELECT ${COLUMNS} ${matching} AND id >= $3 ORDER BY id DESC`, [
    workspaceId,
    end,
    last.id,
    ...owner,
  ]);
  return { schedules: rows.map(fromRow), more: shown.length < found.length };
}

/** Due schedules of all workspaces, the longest overdue first. A row with a broken seal is never due. */
export async function dueSchedules(db: Db, now: number, limit: number): Promise<Schedule[]> {
  for (;;) {
    const rows = await db.all<ScheduleRow>(
      `SELECT ${COLUMNS} FROM schedules WHERE next_at IS NOT NULL AND next_at <= $1 ORDER BY next_at, id LIMIT $2`,
      [now, limit],
    );
    const broken = rows.filter((row) => !db.seals.fits("schedules", row));
    if (broken.length === 0) return rows.map(fromRow);
    await db.tx(null, async (tx) => {
      for (const { workspace_id: workspaceId, id } of broken) {
        tx.write("UPDATE schedules SET next_at = NULL WHERE workspace_id = $1 AND id = $2", [
          workspaceId,
          id,
        ]);
      }
    });
  }
}

/** When the next schedule is due; null if none is. */
export async function nextDue(sql: Sql): Promise<number | null> {
  const row = await sql.get<{ next: number | null }>(
    "SELECT MIN(next_at) AS next FROM schedules WHERE next_at IS NOT NULL",
  );
  return row?.next ?? null;
}

/**
 * Whether a task made for a schedule belongs to the schedule's agent, rather than to another agent of the same name.
 */
export async function isOfAgent(
  tx: Tx,
  { workspaceId, agentId }: Pick<Schedule, "workspaceId" | "agentId">,
  task: string,
): Promise<boolean> {
  const row = await tx.get<{ agent_id: number }>(
    "SELECT agent_id FROM tasks WHERE workspace_id = $1 AND id = $2",
    [workspaceId, task],
  );
  return row?.agent_id === agentId;
}

/**
 * Writes the result of a run and the next time.
 * @returns false if the schedule was changed or deleted since it was read; then nothing is written
 */
export async function settleRun(
  tx: Tx,
  { workspaceId, id, version, nextAt: due }: Pick<Schedule, "workspaceId" | "id" | "version" | "nextAt">,
  { at, task, code }: ScheduleRunResult,
  then: { readonly status: ScheduleStatus; readonly nextAt: number | null },
): Promise<boolean> {
  const settle = () =>
    tx.run(
      `UPDATE schedules SET last_at = $5, last_task = $6, last_code = $7, status = $8, next_at = $9
     WHERE workspace_id = $1 AND id = $2 AND version = $3 AND next_at = $4`,
      [workspaceId, id, version, due, at, task, code, then.status, then.nextAt],
    );
  return (await tx.seals.change(tx, "schedules", keyOf({ workspaceId, id }), settle)) > 0;
}

function keyOf({ workspaceId, id }: Pick<Schedule, "workspaceId" | "id">) {
  return { workspace_id: workspaceId, id };
}

function fromRow(row: ScheduleRow): Schedule {
  return {
    workspaceId: row.workspace_id,
    id: row.id,
    agentId: row.agent_id,
    name: row.name,
    agent: row.agent,
    prompt: row.prompt,
    cron: row.cron,
    timezone: row.timezone,
    tier: row.tier,
    tools: JSON.parse(row.tools) as string[],
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    missed: row.missed,
    status: row.status,
    version: row.version,
    createdBy: row.created_by,
    runsAs: row.runs_as,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    nextAt: row.next_at,
    last: row.last_at === null ? null : { at: row.last_at, task: row.last_task, code: row.last_code },
  };
}

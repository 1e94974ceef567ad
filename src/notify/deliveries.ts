import { Problem } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import type { Sql, Tx } from "../store/db.ts";
import { NOTICE_TYPES } from "./notice-types.ts";

/** `replaced`: superseded by a newer notice of its type, so it is not retried. */
export type DeliveryStatus = "pending" | "delivered" | "failed" | "replaced";

/** A notice on its way to the webhook, as the delivery log shows it. */
export interface Delivery {
  readonly id: string;
  readonly type: string;
  readonly status: DeliveryStatus;
  /** Attempts so far, including redeliveries. */
  readonly attempts: number;
  readonly createdAt: number;
  readonly attemptedAt: number | null;
  /** HTTP status of the last response; null if there was none. */
  readonly lastStatus: number | null;
  /** Error of the last attempt, in this program's own words. */
  readonly lastError: string | null;
  /** Time of the next attempt; null if there will be none. */
  readonly nextAt: number | null;
}

/** Identifies a delivery. */
export interface DeliveryRef {
  readonly workspaceId: number;
  readonly id: string;
}

/** A delivery that is due, with its body. */
export interface DueDelivery extends DeliveryRef {
  readonly type: string;
  readonly body: string;
  /** Attempts since it was last requested. */
  readonly tries: number;
}

/** The result of an attempt. */
export interface Attempt {
  readonly at: number;
  readonly httpStatus: number | null;
  /** Null means accepted. */
  readonly problem: string | null;
  /** When to retry; null: never. */
  readonly nextAt: number | null;
}

interface DeliveryRow {
  readonly id: string;
  readonly type: string;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  readonly created_at: number;
  readonly attempted_at: number | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly next_at: number | null;
}

/** Maximum number of pending deliveries per workspace. Beyond it, new deliveries are dropped and logged. */
export const PENDING_LIMIT = 10_000;
/** Maximum number of finished deliveries kept per type and workspace. */
export const KEPT_LIMIT = 1_000;

/** By type and status, so that SQLite counts in an index. It would otherwise read every delivery, with its body. */
const COUNT_PENDING = `SELECT COUNT(*) AS count FROM (
  SELECT 1 FROM webhook_deliveries WHERE workspace_id = $1 AND status = 'pending'
    AND type IN (${NOTICE_TYPES.map((type) => `'${type}'`).join(", ")}) LIMIT $2) AS waiting`;
const COLUMNS = "id, type, status, attempts, created_at, attempted_at, last_status, last_error, next_at";

/** Stores a notice that is due at once. @returns false if too many are pending */
export async function insertDelivery(
  tx: Tx,
  { workspaceId, id, type, body }: Omit<DueDelivery, "tries">,
  now: number,
): Promise<boolean> {
  const waiting = await tx.get<{ count: number }>(COUNT_PENDING, [workspaceId, PENDING_LIMIT]);
  if ((waiting?.count ?? 0) >= PENDING_LIMIT) return false;
  tx.write(
    `INSERT INTO webhook_deliveries (workspace_id, id, type, body, created_at, status, attempts, tries, next_at, seal)
     VALUES ($1, $2, $3, $4, $5, 'pending', 0, 0, $5, $6)`,
    [
      workspaceId,
      id,
      type,
      body,
      now,
      tx.seals.of("webhook_deliveries", { workspace_id: workspaceId, id, type, body, created_at: now }),
    ],
  );
  return true;
}

/** Ends pending deliveries of a type for which only the newest matters. */
export async function replacePending(tx: Tx, workspaceId: number, type: string): Promise<void> {
  // A subquery, for the same reason as in `COUNT_PENDING`.
  const replaced = await tx.run(
    `UPDATE webhook_deliveries SET status = 'replaced', next_at = NULL
     WHERE workspace_id = $1 AND id IN (
       SELECT id FROM webhook_deliveries WHERE workspace_id = $1 AND type = $2 AND status = 'pending')`,
    [workspaceId, type],
  );
  if (replaced > 0) dropOld(tx, workspaceId, type, "replaced");
}

/** Ends all pending deliveries as failed. They can be requested again. */
export function failPending(tx: Tx, workspaceId: number, error: string): void {
  tx.write(
    `UPDATE webhook_deliveries SET status = 'failed', next_at = NULL, last_error = $2
     WHERE workspace_id = $1 AND status = 'pending'`,
    [workspaceId, error],
  );
}

/** Due deliveries, longest overdue first, at most `limit` per workspace, so that no backlog hides others. */
export function dueDeliveries(sql: Sql, now: number, limit: number): Promise<DeliveryRef[]> {
  return sql.all<DeliveryRef>(
    `SELECT workspace_id AS "workspaceId", id FROM (
       SELECT workspace_id, id, next_at, ROW_NUMBER() OVER (PARTITION BY workspace_id ORDER BY next_at, id) AS place
       FROM webhook_deliveries WHERE next_at IS NOT NULL AND next_at <= $1) AS due
     WHERE place <= $2 ORDER BY next_at, id`,
    [now, limit],
  );
}

/**
 * The sealed fields of a delivery. Sealed because the server signs each body that it delivers as its own statement.
 */
interface DueRow {
  readonly workspace_id: number;
  readonly id: string;
  readonly type: string;
  readonly body: string;
  readonly created_at: number;
  readonly tries: number;
  readonly seal: Uint8Array | null;
}

/**
 * A delivery that is still due; undefined if it was sent, replaced or postponed. A delivery that another program has
 * written to the file is marked as failed.
 */
export async function findDue(
  db: Sql,
  { workspaceId, id }: DeliveryRef,
  now: number,
): Promise<DueDelivery | undefined> {
  const row = await db.get<DueRow>(
    `SELECT workspace_id, id, type, body, created_at, tries, seal FROM webhook_deliveries
     WHERE workspace_id = $1 AND id = $2 AND next_at <= $3`,
    [workspaceId, id, now],
  );
  if (!row) return undefined;
  const { type, body, tries } = row;
  if (db.seals.fits("webhook_deliveries", row)) return { workspaceId, id, type, body, tries };
  await db.run(
    `UPDATE webhook_deliveries SET status = 'failed', next_at = NULL, last_error = $3 WHERE workspace_id = $1 AND id = $2`,
    [workspaceId, id, "It was changed in the database file."],
  );
  return undefined;
}

/** When the next delivery after `now` is due; null if none is scheduled. */
export async function nextDue(sql: Sql, now: number): Promise<number | null> {
  const row = await sql.get<{ next: number | null }>(
    "SELECT MIN(next_at) AS next FROM webhook_deliveries WHERE next_at IS NOT NULL AND next_at > $1",
    [now],
  );
  return row?.next ?? null;
}

/**
 * Stores the result of an attempt. A success always counts; a failure does not affect a redelivery requested in the
 * meantime, whose retries start over.
 */
export function noteAttempt(
  tx: Tx,
  { workspaceId, id, type, tries }: Pick<DueDelivery, "workspaceId" | "id" | "type" | "tries">,
  { at, httpStatus, problem, nextAt }: Attempt,
): void {
  const status: DeliveryStatus = problem === null ? "delivered" : nextAt === null ? "failed" : "pending";
  tx.write(
    `UPDATE webhook_deliveries SET attempts = attempts + 1, attempted_at = $3, last_status = $4, last_error = $5,
       tries = CASE WHEN tries = $8 THEN tries + 1 ELSE tries END,
       status = CASE WHEN (status = 'pending' AND tries = $8) OR $6 = 'delivered' THEN $6 ELSE status END,
       next_at = CASE WHEN $6 = 'delivered' THEN NULL WHEN status = 'pending' AND tries = $8 THEN $7 ELSE next_at END
     WHERE workspace_id = $1 AND id = $2`,
    [workspaceId, id, at, httpStatus, problem, status, nextAt, tries],
  );
  if (status !== "pending") dropOld(tx, workspaceId, type, status);
}

/** Newest first, before the id `before`. Returns one more than `limit` if there are more. */
export async function listDeliveries(
  sql: Sql,
  workspaceId: number,
  limit: number,
  before: string | undefined,
): Promise<Delivery[]> {
  const rows = await sql.all<DeliveryRow>(
    `SELECT ${COLUMNS} FROM webhook_deliveries WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`,
    [workspaceId, before ?? "msg~", limit + 1],
  );
  return rows.map(fromRow);
}

/** Makes a delivery due now and restarts its retries. @throws Problem 404 `not_found` */
export async function redeliver(tx: Tx, workspaceId: number, id: string, now: number): Promise<Delivery> {
  const row = isId("msg", id)
    ? await tx.get<DeliveryRow>(
        `UPDATE webhook_deliveries SET status = 'pending', tries = 0, next_at = $3
         WHERE workspace_id = $1 AND id = $2 RETURNING ${COLUMNS}`,
        [workspaceId, id, now],
      )
    : undefined;
  if (!row) throw new Problem("not_found", `There is no delivery ${JSON.stringify(id)}.`);
  return fromRow(row);
}

/** Keeps only the newest finished deliveries. */
function dropOld(tx: Tx, workspaceId: number, type: string, status: DeliveryStatus): void {
  tx.write(
    `DELETE FROM webhook_deliveries WHERE workspace_id = $1 AND id IN (
       SELECT id FROM webhook_deliveries WHERE workspace_id = $1 AND type = $2 AND status = $3 AND id <= (
         SELECT id FROM webhook_deliveries WHERE workspace_id = $1 AND type = $2 AND status = $3
         ORDER BY id DESC LIMIT 1 OFFSET $4))`,
    [workspaceId, type, status, KEPT_LIMIT],
  );
}

function fromRow(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    type: row.type,
    status: row.status,
    attempts: row.attempts,
    createdAt: row.created_at,
    attemptedAt: row.attempted_at,
    lastStatus: row.last_status,
    lastError: row.last_error,
    nextAt: row.next_at,
  };
}

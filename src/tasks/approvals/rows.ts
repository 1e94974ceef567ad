import type { Sql, Tx } from "../../store/db.ts";
import { readVotes, VOTES, type Vote } from "./votes.ts";

/** Only an `approved` call may be made. `expired`: nobody decided in time. `withdrawn`: its task ended first. */
export type ApprovalStatus = "pending" | "approved" | "denied" | "expired" | "withdrawn";

/** Maximum number of pending calls in one workspace. Each keeps a task with its answers and events. */
export const PENDING_LIMIT = 10_000;

/** A call that requires or required a person's approval. */
export interface Approval {
  readonly workspaceId: number;
  readonly taskId: string;
  readonly callId: string;
  readonly agent: string;
  readonly tool: string;
  /** Seq of the entry that last presented the call. */
  readonly pendingSeq: number;
  /** Seq of the entry that first presented the call. */
  readonly firstSeq: number;
  /** Hash of the connector and tool that were shown (`definitionHash`); null in approvals from older versions. */
  readonly definitionHash: string | null;
  /** Seq of the entry whose payload contains the current arguments. */
  readonly argumentsSeq: number;
  /** The salted hash in that entry, hex. */
  readonly argumentsHash: string;
  /** The number of people who must approve. */
  readonly required: number;
  readonly presentedAt: number;
  readonly expiresAt: number;
  readonly status: ApprovalStatus;
  /** Seq of the entry that settled it; null while pending. */
  readonly decisionSeq: number | null;
}

/**
 * An approval as stored, with its texts; erased texts are null. Rows are not signed: compare them with the ledger by
 * `ApprovalEvidence` before acting on them for a person.
 */
export interface StoredApproval extends Approval {
  /** JSON. */
  readonly arguments: string | null;
  readonly argumentsSalt: Uint8Array | null;
  /** The decision's reason. */
  readonly reason: string | null;
  readonly reasonSalt: Uint8Array | null;
  /** The approvals of the current arguments, earliest first. */
  readonly votes: readonly Vote[];
}

interface ApprovalRow {
  readonly workspace_id: number;
  readonly task_id: string;
  readonly call_id: string;
  readonly agent: string;
  readonly tool: string;
  readonly pending_seq: number;
  readonly first_seq: number | null;
  readonly definition_hash: string | null;
  readonly arguments_seq: number;
  readonly arguments_hash: string;
  readonly required: number;
  readonly presented_at: number;
  readonly expires_at: number;
  readonly status: ApprovalStatus;
  readonly decision_seq: number | null;
  readonly arguments: string | null;
  readonly arguments_salt: Uint8Array | null;
  readonly reason: string | null;
  readonly reason_salt: Uint8Array | null;
  readonly votes: string | null;
}

/** A single statement, so that a row, its texts and its votes are consistent. */
const SELECT = `SELECT a.workspace_id, a.task_id, a.call_id, a.agent, a.tool, a.pending_seq, a.first_seq,
  a.definition_hash, a.arguments_seq,
  a.arguments_hash, a.required, a.presented_at, a.expires_at, a.status, a.decision_seq,
  i.body AS arguments, i.salt AS arguments_salt, o.body AS reason, o.salt AS reason_salt,
  ${VOTES} AS votes
  FROM approvals a
  LEFT JOIN payloads i ON i.workspace_id = a.workspace_id AND i.seq = a.arguments_seq AND i.kind = 'input'
  LEFT JOIN payloads o ON o.workspace_id = a.workspace_id AND o.seq = a.decision_seq AND o.kind = 'output'`;

export async function findApproval(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  taskId: string,
  callId: string,
): Promise<StoredApproval | undefined> {
  const row = await sql.get<ApprovalRow>(
    `${SELECT} WHERE a.workspace_id = $1 AND a.task_id = $2 AND a.call_id = $3`,
    [workspaceId, taskId, callId],
  );
  return row && fromRow(row);
}

/** All approvals of a task. */
export async function approvalsOf(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  taskId: string,
): Promise<StoredApproval[]> {
  const rows = await sql.all<ApprovalRow>(`${SELECT} WHERE a.workspace_id = $1 AND a.task_id = $2`, [
    workspaceId,
    taskId,
  ]);
  return rows.map(fromRow);
}

/** The approvals of a page, newest first. MUST NOT exceed the number of parameters that a statement can have. */
export async function findApprovals(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  named: readonly Pick<Approval, "taskId" | "callId">[],
): Promise<StoredApproval[]> {
  const pairs = named.map((_, index) => `($${index * 2 + 2}, $${index * 2 + 3})`).join(", ");
  const rows = await sql.all<ApprovalRow>(
    `${SELECT} WHERE a.workspace_id = $1 AND (a.task_id, a.call_id) IN (VALUES ${pairs}) ORDER BY a.pending_seq DESC`,
    [workspaceId, ...named.flatMap(({ taskId, callId }) => [taskId, callId])],
  );
  return rows.map(fromRow);
}

/** Position from which expired approvals are read. */
export type ExpiryPlace = Pick<Approval, "expiresAt" | "workspaceId" | "taskId" | "callId">;

/**
 * The expired approval that is longest overdue, after the position `after`. Only one, because its arguments may be
 * megabytes long.
 */
export async function nextExpired(
  sql: Pick<Sql, "get">,
  now: number,
  after: ExpiryPlace | null,
): Promise<StoredApproval | undefined> {
  const { expiresAt, workspaceId, taskId, callId } = after ?? NOWHERE;
  const row = await sql.get<ApprovalRow>(
    `${SELECT} WHERE a.status = 'pending' AND a.expires_at <= $1 AND a.expires_at >= $2
       AND (a.expires_at, a.workspace_id, a.task_id, a.call_id) > ($2, $3, $4, $5)
     ORDER BY a.expires_at, a.workspace_id, a.task_id, a.call_id LIMIT 1`,
    [now, expiresAt, workspaceId, taskId, callId],
  );
  return row && fromRow(row);
}

const NOWHERE: ExpiryPlace = { expiresAt: Number.MIN_SAFE_INTEGER, workspaceId: 0, taskId: "", callId: "" };

export function insertApproval(
  tx: Tx,
  approval: Omit<Approval, "argumentsSeq" | "firstSeq" | "status" | "decisionSeq">,
): void {
  tx.write(
    `INSERT INTO approvals (workspace_id, task_id, call_id, agent, tool, pending_seq, arguments_seq, arguments_hash,
       required, presented_at, expires_at, status, definition_hash)
     VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $9, $10, 'pending', $11)`,
    [
      approval.workspaceId,
      approval.taskId,
      approval.callId,
      approval.agent,
      approval.tool,
      approval.pendingSeq,
      approval.argumentsHash,
      approval.required,
      approval.presentedAt,
      approval.expiresAt,
      approval.definitionHash,
    ],
  );
}

/** The fields that change when a call is presented again. */
export type PresentedFields = Pick<
  Approval,
  "pendingSeq" | "argumentsHash" | "definitionHash" | "required" | "presentedAt" | "expiresAt"
>;

/** Makes the call pending again, as presented in the entry `pendingSeq`. Earlier votes no longer count. */
export function presentAgain(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  presented: PresentedFields,
): void {
  const key = [workspaceId, taskId, callId];
  tx.write(
    `UPDATE approvals SET first_seq = COALESCE(first_seq, pending_seq), pending_seq = $4, arguments_seq = $4,
       arguments_hash = $5, definition_hash = $6, required = $7, presented_at = $8, expires_at = $9,
       status = 'pending', decision_seq = NULL
     WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3`,
    [
      ...key,
      presented.pendingSeq,
      presented.argumentsHash,
      presented.definitionHash,
      presented.required,
      presented.presentedAt,
      presented.expiresAt,
    ],
  );
  tx.write("DELETE FROM approval_votes WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3", key);
}

export function settleApproval(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  status: "approved" | "denied" | "expired",
  decisionSeq: number,
): void {
  tx.write(
    `UPDATE approvals SET status = $4, decision_seq = $5
     WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3 AND status = 'pending'`,
    [workspaceId, taskId, callId, status, decisionSeq],
  );
}

/**
 * Makes the arguments of the entry `seq` current. Earlier votes no longer count; the vote of the person who changed
 * them is added separately.
 */
export function changeArguments(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  seq: number,
  hash: string,
): void {
  const key = [workspaceId, taskId, callId];
  tx.write(
    `UPDATE approvals SET arguments_seq = $4, arguments_hash = $5
     WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3`,
    [...key, seq, hash],
  );
  tx.write("DELETE FROM approval_votes WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3", key);
}

/** The number of pending approvals of a workspace, counted only up to the limit. */
export async function countPending(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ pending: number }>(
    `SELECT COUNT(*) AS pending FROM
       (SELECT 1 FROM approvals WHERE workspace_id = $1 AND status = 'pending' LIMIT $2) AS counted`,
    [workspaceId, PENDING_LIMIT],
  );
  return row?.pending ?? 0;
}

/**
 * Withdraws the pending approvals of a task that ends.
 * @returns the ids of the calls that were waiting
 */
export async function withdrawApprovals(
  tx: Tx,
  workspaceId: number,
  taskId: string,
): Promise<readonly string[]> {
  const rows = await tx.all<{ call_id: string }>(
    `UPDATE approvals SET status = 'withdrawn' WHERE workspace_id = $1 AND task_id = $2 AND status = 'pending'
     RETURNING call_id`,
    [workspaceId, taskId],
  );
  return rows.map(({ call_id }) => call_id);
}

function fromRow(row: ApprovalRow): StoredApproval {
  return {
    workspaceId: row.workspace_id,
    taskId: row.task_id,
    callId: row.call_id,
    agent: row.agent,
    tool: row.tool,
    pendingSeq: row.pending_seq,
    firstSeq: row.first_seq ?? row.pending_seq,
    definitionHash: row.definition_hash,
    argumentsSeq: row.arguments_seq,
    argumentsHash: row.arguments_hash,
    required: row.required,
    presentedAt: row.presented_at,
    expiresAt: row.expires_at,
    status: row.status,
    decisionSeq: row.decision_seq,
    arguments: row.arguments,
    argumentsSalt: row.arguments_salt,
    reason: row.reason,
    reasonSalt: row.reason_salt,
    votes: readVotes(row.votes),
  };
}

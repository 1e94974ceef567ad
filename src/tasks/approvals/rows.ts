import type { Sql, Tx } from "../../store/db.ts";

/**
 * Whether a call may be made that a person was asked for: `approved` alone says so. `expired`: nobody decided in time.
 * `withdrawn`: its task ended first.
 */
export type ApprovalStatus = "pending" | "approved" | "denied" | "expired" | "withdrawn";

/** Calls of one workspace that may wait for people at once: each keeps a task, its answers and its events. */
export const PENDING_LIMIT = 10_000;

/** A call that waits, or has waited, for a person. */
export interface Approval {
  readonly workspaceId: number;
  readonly taskId: string;
  readonly callId: string;
  readonly agent: string;
  readonly tool: string;
  /** Seq of the entry that shows what is asked: the last one, where the call was presented again. */
  readonly pendingSeq: number;
  /** Seq of the entry that presented the call first. */
  readonly firstSeq: number;
  /** Of the connector and the tool that were shown (`definitionHash`); null in an approval of an older version. */
  readonly definitionHash: string | null;
  /** Seq of the entry whose payload holds the arguments that count. */
  readonly argumentsSeq: number;
  /** The salted hash in that entry, hex. */
  readonly argumentsHash: string;
  /** How many people have to say yes. */
  readonly required: number;
  readonly presentedAt: number;
  readonly expiresAt: number;
  readonly status: ApprovalStatus;
  /** Seq of the entry that settled it; null while it is pending. */
  readonly decisionSeq: number | null;
}

/** The same with its texts; null where they were erased. */
export interface ApprovalWithTexts extends Approval {
  /** JSON. */
  readonly arguments: string | null;
  /** Of the decision. */
  readonly reason: string | null;
}

interface Row {
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
  readonly reason: string | null;
}

const SELECT = `SELECT a.workspace_id, a.task_id, a.call_id, a.agent, a.tool, a.pending_seq, a.first_seq,
  a.definition_hash, a.arguments_seq,
  a.arguments_hash, a.required, a.presented_at, a.expires_at, a.status, a.decision_seq,
  (SELECT p.body FROM payloads p
    WHERE p.workspace_id = a.workspace_id AND p.seq = a.arguments_seq AND p.kind = 'input') AS arguments,
  (SELECT p.body FROM payloads p
    WHERE p.workspace_id = a.workspace_id AND p.seq = a.decision_seq AND p.kind = 'output') AS reason
  FROM approvals a`;

export async function findApproval(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  taskId: string,
  callId: string,
): Promise<ApprovalWithTexts | undefined> {
  const row = await sql.get<Row>(
    `${SELECT} WHERE a.workspace_id = $1 AND a.task_id = $2 AND a.call_id = $3`,
    [workspaceId, taskId, callId],
  );
  return row && fromRow(row);
}

/** All that a task has asked for. */
export async function approvalsOf(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  taskId: string,
): Promise<ApprovalWithTexts[]> {
  const rows = await sql.all<Row>(`${SELECT} WHERE a.workspace_id = $1 AND a.task_id = $2`, [
    workspaceId,
    taskId,
  ]);
  return rows.map(fromRow);
}

/** Those of a page, which are not more than a statement has parameters for, the newest first. */
export async function approvalsNamed(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  named: readonly Pick<Approval, "taskId" | "callId">[],
): Promise<ApprovalWithTexts[]> {
  const pairs = named.map((_, index) => `($${index * 2 + 2}, $${index * 2 + 3})`).join(", ");
  const rows = await sql.all<Row>(
    `${SELECT} WHERE a.workspace_id = $1 AND (a.task_id, a.call_id) IN (VALUES ${pairs}) ORDER BY a.pending_seq DESC`,
    [workspaceId, ...named.flatMap(({ taskId, callId }) => [taskId, callId])],
  );
  return rows.map(fromRow);
}

export async function expiredApprovals(
  sql: Pick<Sql, "all">,
  now: number,
  limit: number,
): Promise<ApprovalWithTexts[]> {
  const rows = await sql.all<Row>(
    `${SELECT} WHERE a.status = 'pending' AND a.expires_at <= $1 ORDER BY a.expires_at LIMIT $2`,
    [now, limit],
  );
  return rows.map(fromRow);
}

export async function insertApproval(
  tx: Tx,
  approval: Omit<Approval, "argumentsSeq" | "firstSeq" | "status" | "decisionSeq">,
): Promise<void> {
  await tx.run(
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

/** A call as it is presented again. */
export type Presented = Pick<
  Approval,
  "pendingSeq" | "argumentsHash" | "definitionHash" | "required" | "presentedAt" | "expiresAt"
>;

/** The call waits again, as the entry `pendingSeq` shows it. What people have said of it before counts no more. */
export async function presentAgain(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  presented: Presented,
): Promise<void> {
  const key = [workspaceId, taskId, callId];
  await tx.run(
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
  await tx.run("DELETE FROM approval_votes WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3", key);
}

/** Settles it. */
export async function settleApproval(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  status: "approved" | "denied" | "expired",
  decisionSeq: number,
): Promise<void> {
  await tx.run(
    `UPDATE approvals SET status = $4, decision_seq = $5
     WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3 AND status = 'pending'`,
    [workspaceId, taskId, callId, status, decisionSeq],
  );
}

/** From now on the arguments of the entry `seq` count, and nobody has said yes to them but who changed them. */
export async function changeArguments(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  seq: number,
  hash: string,
): Promise<void> {
  const key = [workspaceId, taskId, callId];
  await tx.run(
    `UPDATE approvals SET arguments_seq = $4, arguments_hash = $5
     WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3`,
    [...key, seq, hash],
  );
  await tx.run("DELETE FROM approval_votes WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3", key);
}

/**
 * How many calls of a workspace wait for people. Counted up to the limit only.
 */
export async function countPending(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ pending: number }>(
    `SELECT COUNT(*) AS pending FROM
       (SELECT 1 FROM approvals WHERE workspace_id = $1 AND status = 'pending' LIMIT $2) AS some`,
    [workspaceId, PENDING_LIMIT],
  );
  return row?.pending ?? 0;
}

/**
 * The same person, however a token's issuer has written the name: two spellings of one name are not two people.
 */
function personKey(person: string): string {
  return person.normalize("NFKC").trim().replace(/\s+/gu, " ").toLowerCase();
}

/** @returns how many people have said yes now; null where this one had before */
export async function addVote(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  person: string,
  seq: number,
): Promise<number | null> {
  const key = [workspaceId, taskId, callId];
  const added = await tx.run(
    `INSERT INTO approval_votes (workspace_id, task_id, call_id, person, seq) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING`,
    [...key, personKey(person), seq],
  );
  if (added === 0) return null;
  const row = await tx.get<{ votes: number }>(
    "SELECT COUNT(*) AS votes FROM approval_votes WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3",
    key,
  );
  return row?.votes ?? 0;
}

/** A task that ends asks for nothing any more. @returns the ids of the calls that waited */
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

function fromRow(row: Row): ApprovalWithTexts {
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
    reason: row.reason,
  };
}

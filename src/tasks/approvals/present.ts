import type { BeforeToolCall, Deny } from "../../agents/index.ts";
import type { Draft } from "../../ledger/entry.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Sql, Tx } from "../../store/db.ts";
import { markAwaiting } from "../store.ts";
import type { Task } from "../task.ts";
import { type ApprovalStatus, type ApprovalWithTexts, insertApproval } from "./rows.ts";

/** Ends a run that waits for a person: the task keeps what it has come to, and no slot. */
export class AwaitingApproval extends Error {
  override readonly name = "AwaitingApproval";

  constructor(callId: string) {
    super(`the call ${callId} waits for a person`);
  }
}

/** What a person has decided on a call, for the run that comes to it again. */
export type Verdict =
  | { readonly kind: "approved"; readonly decisionSeq: number }
  | { readonly kind: "denied"; readonly deny: Deny };

/** Null where nobody has decided yet. */
export function verdictOf(approval: ApprovalWithTexts, call: BeforeToolCall): Verdict | null {
  if (approval.status === "pending") return null;
  const { decisionSeq, reason } = approval;
  if (approval.status !== "approved" || decisionSeq === null) {
    return { kind: "denied", deny: { deny: wordsOf(approval.status, reason) } };
  }
  // Nobody approved what is not exactly this.
  if (JSON.stringify(call.arguments) !== approval.arguments) {
    return { kind: "denied", deny: { deny: "What was approved are other arguments." } };
  }
  return { kind: "approved", decisionSeq };
}

/** What a model is told of a call that is not made. */
function wordsOf(status: ApprovalStatus, reason: string | null): string {
  if (status === "expired") return "Nobody decided on it in time.";
  return reason === null ? "A person has denied it." : `A person has denied it: ${reason}`;
}

/** How a call is put before people. */
export interface Presentation {
  readonly task: Task;
  readonly agent: string;
  readonly required: number;
  readonly now: number;
  readonly expiresMs: number;
  /** The entry that shows it, but for its outcome and texts. */
  readonly draft: Draft;
}

/** Records what is asked, and that the task waits. */
export async function presentCall(
  tx: Tx,
  ledger: Ledger,
  call: BeforeToolCall,
  { task, agent, required, now, expiresMs, draft }: Presentation,
): Promise<void> {
  const { workspaceId, id: taskId } = task;
  const pendingSeq = await ledger.append(tx, workspaceId, {
    ...draft,
    phase: "single",
    outcome: "pending",
    code: "approval_required",
    tool: call.tool,
    input: JSON.stringify(call.arguments),
  });
  await insertApproval(tx, {
    workspaceId,
    taskId,
    callId: call.id,
    agent,
    tool: call.tool,
    pendingSeq,
    argumentsHash: await argumentsHashOf(tx, workspaceId, pendingSeq),
    required,
    presentedAt: now,
    expiresAt: now + expiresMs,
  });
  if (!(await markAwaiting(tx, workspaceId, taskId))) throw new Error("a task that asks is not running");
}

/** The salted hash of an entry's arguments, which is what a decision on them is bound to. */
export async function argumentsHashOf(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  seq: number,
): Promise<string> {
  const row = await sql.get<{ hash: string | null }>(
    "SELECT bytes->>'input_hash' AS hash FROM ledger WHERE workspace_id = $1 AND seq = $2",
    [workspaceId, seq],
  );
  if (row?.hash == null) throw new Error(`the entry ${seq} has no arguments`);
  return row.hash;
}

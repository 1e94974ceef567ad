import type { BeforeToolCall, Deny } from "../../agents/index.ts";
import { timestamp } from "../../base/clock.ts";
import type { CatalogueTool } from "../../connectors/catalogue.ts";
import { definitionHash } from "../../connectors/tools/definition.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import { findEntry } from "../../ledger/reading/query.ts";
import type { Tx } from "../../store/db.ts";
import type { Task } from "../task.ts";
import type { ProvenApproval } from "./proven.ts";
import { type Approval, type ApprovalStatus, insertApproval, presentAgain } from "./rows.ts";

/** Ends a run that waits for a person. The task keeps its progress but no slot. */
export class AwaitingApproval extends Error {
  override readonly name = "AwaitingApproval";

  constructor(callId: string) {
    super(`the call ${callId} waits for a person`);
  }
}

/**
 * A person's decision on a call, for the run that reaches the call again. `changed`: the call must be presented
 * again.
 */
export type ApprovalVerdict =
  | { readonly kind: "approved"; readonly decisionSeq: number }
  | { readonly kind: "changed" }
  | { readonly kind: "denied"; readonly deny: Deny };

/**
 * Null if nobody has decided yet.
 * @param definition the hash of the tool that would be called (`definitionHash`)
 */
export function verdictOf(
  approval: ProvenApproval,
  call: BeforeToolCall,
  definition: string | undefined,
): ApprovalVerdict | null {
  if (approval.status === "pending") return null;
  const { decisionSeq, reason } = approval;
  if (approval.status !== "approved" || decisionSeq === null) {
    return { kind: "denied", deny: { deny: wordsOf(approval.status, reason) } };
  }
  if (approval.arguments === null) {
    return { kind: "denied", deny: { deny: "The arguments that were approved have been erased." } };
  }
  // An approval covers exactly these arguments.
  if (JSON.stringify(call.arguments) !== approval.arguments) {
    return { kind: "denied", deny: { deny: "Different arguments were approved." } };
  }
  const isSameTool = definition !== undefined && definition === approval.definitionHash;
  if (!approval.isBound || !isSameTool) return { kind: "changed" };
  return { kind: "approved", decisionSeq };
}

/** The text that a model receives if a call is not made. */
function wordsOf(status: ApprovalStatus, reason: string | null): string {
  if (status === "expired") return "Nobody decided in time.";
  if (status !== "denied") return "The request for approval was withdrawn.";
  return reason === null ? "A person denied it." : `A person denied it: ${reason}`;
}

/** A call as it is presented for approval. */
export interface ApprovalRequest {
  readonly task: Pick<Task, "workspaceId" | "id">;
  readonly callId: string;
  /** JSON of the arguments. */
  readonly arguments: string;
  readonly tool: CatalogueTool;
  readonly agent: string;
  readonly required: number;
  readonly now: number;
  readonly expiresMs: number;
  /** The requester of the call, for the entry that shows it. */
  readonly draft: Pick<EntryDraft, "channel" | "actor" | "tier">;
}

/**
 * Records a request for approval. The row is not signed, so the entry contains everything that the decision is
 * checked against.
 * @param before the same call as presented earlier
 */
export async function presentCall(
  tx: Tx,
  ledger: Ledger,
  presentation: ApprovalRequest,
  before: Approval | undefined,
): Promise<void> {
  const { task, callId, tool, agent, required, now, expiresMs, draft } = presentation;
  const { workspaceId, id: taskId } = task;
  const { origin } = tool;
  const hash = definitionHash(tool);
  const expiresAt = now + expiresMs;
  const pendingSeq = await ledger.append(tx, workspaceId, {
    ...draft,
    agent,
    task: taskId,
    phase: "single",
    action: "tool.call",
    outcome: "pending",
    code: "approval_required",
    tool: tool.name,
    input: presentation.arguments,
    detail: {
      call: callId,
      definition_hash: hash,
      required,
      expires_at: timestamp(expiresAt),
      connector_kind: origin.kind,
      connector_authorised_by: origin.authorisedBy,
      ...(origin.kind === "builtin" ? {} : { connector_authorised_at: timestamp(origin.authorisedAt) }),
      ...(before === undefined ? {} : { presented_before: before.pendingSeq }),
    },
  });
  const { argumentsHash, presentedAt } = await shownBy(tx, workspaceId, pendingSeq);
  const presented = { pendingSeq, argumentsHash, definitionHash: hash, required, presentedAt, expiresAt };
  if (before) presentAgain(tx, before, presented);
  else insertApproval(tx, { workspaceId, taskId, callId, agent, tool: tool.name, ...presented });
}

/** The time at which an entry was written, and the salted hash of its arguments, to which a decision is bound. */
export async function shownBy(
  tx: Tx,
  workspaceId: number,
  seq: number,
): Promise<Pick<Approval, "argumentsHash" | "presentedAt">> {
  const entry = await findEntry(tx, workspaceId, seq);
  const { input_hash: argumentsHash, ts } = parsedEntry(entry?.bytes ?? "");
  if (argumentsHash === undefined || ts === undefined) throw new Error(`the entry ${seq} has no arguments`);
  return { argumentsHash, presentedAt: Date.parse(ts) };
}

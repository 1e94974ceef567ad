import type { Caller } from "../../access/caller.ts";
import { Problem } from "../../base/errors.ts";
import type { Approval, StoredApproval } from "./rows.ts";

export interface DecisionRequest {
  readonly decision: "approve" | "deny";
  readonly reason?: string;
  /** Replace the requested arguments; only with `approve`. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  /** Hash of the arguments that the person was shown. A decision on other arguments is refused. */
  readonly argumentsHash?: string;
  /** Hash of the tool's definition that the person was shown. A decision on another definition is refused. */
  readonly definitionHash?: string;
}

/**
 * Refuses a decision on anything but what was shown. Without a hash, the decision concerns the arguments originally
 * requested; arguments substituted by a person can only be approved by their hash.
 * @throws Problem 409 `approval_changed`
 */
export function refuseOthers(
  approval: Approval,
  { decision, argumentsHash, definitionHash: shown }: DecisionRequest,
): void {
  if (shown !== undefined && shown !== approval.definitionHash) throw isOther();
  if (argumentsHash !== undefined && argumentsHash !== approval.argumentsHash) throw isOther();
  const isChanged = approval.argumentsSeq !== approval.pendingSeq;
  if (argumentsHash === undefined && isChanged && decision === "approve") throw isOther();
}

/**
 * Refuses to approve erased arguments, since nobody can see them. Other arguments can be approved in their place.
 * @throws Problem 409 `approval_erased`
 */
export function refuseErased({ arguments: text }: StoredApproval, changed: string | undefined): void {
  if (text !== null || changed !== undefined) return;
  throw new Problem(
    "approval_erased",
    "The call's arguments were erased, so nobody can see what they would approve. Deny the call, or approve it with arguments of your own.",
  );
}

/**
 * If several people must approve, only tokens that name a person count, since other tokens do not identify one.
 * @throws Problem 403 `person_required`
 */
export function refuseUnnamed({ person }: Caller, { required }: Approval): void {
  if (required === 1 || person !== null) return;
  throw new Problem(
    "person_required",
    `${required} different people have to approve this call. Use a token that names its person.`,
  );
}

export function alreadyDecided(approval: Approval | undefined): Problem {
  const status = approval?.status;
  if (status === "expired") return alreadyExpired();
  if (status === "approved" || status === "denied") {
    return new Problem("approval_decided", `The call has already been ${status}.`);
  }
  return new Problem("approval_decided", "The call is no longer needed because its task has ended.");
}

export function alreadyExpired(): Problem {
  return new Problem("approval_decided", "Nobody decided in time, so the call was denied.");
}

function isOther(): Problem {
  return new Problem(
    "approval_changed",
    "The call has changed. Review it again, and send its new arguments_hash and definition_hash.",
  );
}

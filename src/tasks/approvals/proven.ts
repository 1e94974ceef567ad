import { timestamp } from "../../base/clock.ts";
import { personKey } from "../../base/person-key.ts";
import { isHashOf } from "../../ledger/payload.ts";
import type { ApprovalStatus, StoredApproval } from "./rows.ts";

/** A person's decision, as recorded in its entry. */
export interface RecordedDecision {
  readonly person: string;
  /** RFC 3339. */
  readonly at: string;
}

/** An approval whose row agrees with the ledger. */
export interface ProvenApproval extends StoredApproval {
  /** The approvals of the current arguments, earliest first. */
  readonly approvedBy: readonly RecordedDecision[];
  /** The decision in the entry that settled it; null if none did. If it expired, the person is `nobody`. */
  readonly decision: RecordedDecision | null;
  /**
   * Whether the entry that shows the call names everything that a decision is bound to. Entries from earlier versions
   * do not; such a call is presented again before it is made.
   */
  readonly isBound: boolean;
}

/** The fields of an entry about an approval, as this program writes them. */
export interface ApprovalEntry {
  readonly ts: string;
  readonly phase: string;
  readonly action: string;
  readonly outcome: string;
  readonly code?: string;
  readonly agent?: string;
  readonly task?: string;
  readonly tool?: string;
  readonly input_hash?: string;
  readonly output_hash?: string;
  readonly oversight?: {
    readonly person: string;
    readonly decision: string;
    readonly decided_at?: string;
    readonly target_seq?: number;
    readonly arguments_hash?: string;
  };
  readonly detail?: {
    readonly call?: string;
    readonly definition_hash?: string;
    readonly required?: number;
    readonly expires_at?: string;
    /** On the intent of an approved call. */
    readonly approval_seq?: number;
  };
}

/** Returns an entry of the approval's workspace by its seq, verified against the signed tree. */
export type EntryOf = (seq: number) => ApprovalEntry | undefined;

/** How a row contradicts the ledger. */
export interface Contradiction {
  /** The problem, as the predicate of a sentence whose subject is the approval. */
  readonly problem: string;
  /** Seq of the entry that the row names, or of the entry that shows the call. */
  readonly seq: number;
}

/** The action and outcome of the entry that settles an approval, by status; undefined if no entry does. */
const SETTLED_BY: { readonly [status in ApprovalStatus]?: readonly [action: string, outcome: string] } = {
  approved: ["oversight.approve", "succeeded"],
  denied: ["oversight.deny", "succeeded"],
  expired: ["oversight.expire", "denied"],
};

/**
 * Compares a row with the entries that it names. Each field that is acted on comes from an entry or is compared with
 * one.
 */
export function compareApproval(approval: StoredApproval, entryOf: EntryOf): ProvenApproval | Contradiction {
  const { pendingSeq, firstSeq, decisionSeq, status, votes } = approval;
  const shown = entryOf(pendingSeq);
  if (!shown || !isPresentation(approval, shown))
    return differs("names an entry that did not present it", pendingSeq);
  const first = entryOf(firstSeq);
  if (firstSeq > pendingSeq || !first || !isPresentation(approval, first)) {
    return differs("names an entry that did not present it first", firstSeq);
  }
  const terms = termsOf(approval, shown);
  if (terms === null) return differs("has terms that differ from those presented", pendingSeq);
  if (!hasArguments(approval, shown, entryOf))
    return differs(
      "has arguments that were neither presented nor changed by a person",
      approval.argumentsSeq,
    );
  const approvedBy: RecordedDecision[] = [];
  const people = new Set<string>();
  for (const { seq, person: voter } of votes) {
    // Earlier versions kept invisible characters in the key.
    const person = personKey(voter);
    const entry = entryOf(seq);
    const decided = entry && decisionIn(approval, entry, "approved");
    if (!decided || personKey(decided.person) !== person) return differs("has a vote that nobody cast", seq);
    approvedBy.push(decided);
    people.add(person);
  }
  const settled = SETTLED_BY[status];
  if (settled === undefined) {
    if (decisionSeq !== null) return differs("names a decision although no entry settled it", decisionSeq);
    if (status === "pending" && people.size >= approval.required) return differs("is settled", pendingSeq);
    return { ...approval, ...terms, approvedBy, decision: null };
  }
  const entry = decisionSeq === null ? undefined : entryOf(decisionSeq);
  const decision = entry && decisionIn(approval, entry, status);
  if (!entry || !decision)
    return differs("names a decision that nobody made about it", decisionSeq ?? pendingSeq);
  if (
    status === "approved" &&
    !(people.size >= approval.required && votes.some(({ seq }) => seq === decisionSeq))
  ) {
    return differs("is approved by fewer people than required", pendingSeq);
  }
  const { reason, reasonSalt } = approval;
  if (reason !== null && !(reasonSalt && isHashOf(entry.output_hash, reasonSalt, reason))) {
    return differs("has a reason that differs from the one given", decisionSeq ?? pendingSeq);
  }
  return { ...approval, ...terms, approvedBy, decision };
}

/** Whether the entry presented this call. Entries from earlier versions do not name the call. */
function isPresentation(approval: StoredApproval, entry: ApprovalEntry): boolean {
  const { action, phase, outcome, code, detail } = entry;
  const isAsking = action === "tool.call" && phase === "single" && outcome === "pending";
  const call = detail?.call;
  return (
    isAsking &&
    code === "approval_required" &&
    isAbout(approval, entry) &&
    (call === undefined || call === approval.callId)
  );
}

/** The agent's name is omitted from the entry of a call if it could be a secret. */
function isAbout({ taskId, tool, agent }: StoredApproval, entry: ApprovalEntry): boolean {
  return entry.task === taskId && entry.tool === tool && (entry.agent ?? agent) === agent;
}

/** The tool's definition, the number of people required and the deadline; null if the row contradicts the entry. */
function termsOf(
  approval: StoredApproval,
  { ts, detail = {} }: ApprovalEntry,
): Pick<ProvenApproval, "isBound" | "presentedAt"> | null {
  const presentedAt = Date.parse(ts);
  if ((detail.definition_hash ?? null) !== approval.definitionHash) return null;
  const { required, expires_at: expiresAt } = detail;
  if (required === undefined || expiresAt === undefined) {
    return approval.expiresAt < presentedAt ? null : { isBound: false, presentedAt };
  }
  const isSame =
    required === approval.required &&
    expiresAt === timestamp(approval.expiresAt) &&
    presentedAt === approval.presentedAt;
  return isSame ? { isBound: true, presentedAt } : null;
}

/** Whether the current arguments are those that were shown, or those that a person substituted. */
function hasArguments(approval: StoredApproval, shown: ApprovalEntry, entryOf: EntryOf): boolean {
  const { argumentsSeq, pendingSeq, argumentsHash, arguments: text, argumentsSalt } = approval;
  const entry = argumentsSeq === pendingSeq ? shown : entryOf(argumentsSeq);
  if (entry?.input_hash !== argumentsHash) return false;
  if (entry !== shown) {
    if (entry.oversight?.decision !== "change" || !decisionIn(approval, entry, "approved")) return false;
  }
  return text === null || (argumentsSalt !== null && isHashOf(argumentsHash, argumentsSalt, text));
}

/** Who made this decision on the presented call, and when; null if the entry is not such a decision. */
function decisionIn(
  approval: StoredApproval,
  entry: ApprovalEntry,
  status: ApprovalStatus,
): RecordedDecision | null {
  const { oversight, detail = {} } = entry;
  const [action, outcome] = SETTLED_BY[status] ?? [];
  const isDecision = entry.action === action && entry.outcome === outcome && entry.phase === "single";
  if (!isDecision || !oversight || !isAbout(approval, entry)) return null;
  const isOnThis =
    oversight.target_seq === approval.pendingSeq && oversight.arguments_hash === approval.argumentsHash;
  // Nobody decides an expired approval, so its entry names no definition.
  const isSameTool = status === "expired" || (detail.definition_hash ?? null) === approval.definitionHash;
  if (!isOnThis || !isSameTool) return null;
  return { person: oversight.person, at: oversight.decided_at ?? entry.ts };
}

function differs(problem: string, seq: number): Contradiction {
  return { problem, seq };
}

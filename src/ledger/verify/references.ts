import { redact } from "../../base/log.ts";
import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { isEqual } from "../proof/hash.ts";
import { TREE } from "../tree-hash.ts";
import { formOf, type VerifiedEntryFields } from "./form.ts";
import type { VerificationReport } from "./report.ts";
import type { TreePosition } from "./walk.ts";

/** The maximum number of recent entries kept in memory. Most references are to recent entries. */
const RECENT = 4_096;
/**
 * The maximum number of deletions of documents, and of changes of arguments, that are kept. If a ledger has more, the
 * rest are not compared.
 */
const KEPT = 100_000;
const ROW =
  "SELECT leaf, CAST(bytes AS BLOB) AS bytes FROM main.ledger NOT INDEXED WHERE workspace_id = $1 AND seq = $2";
const TOOL_NAME_LIMIT = 128;

interface EntryReferenceRow {
  readonly leaf: unknown;
  readonly bytes: unknown;
}

/** The decision fields of an entry. */
interface Decision {
  readonly decision?: unknown;
  readonly target_seq?: unknown;
  readonly arguments_hash?: unknown;
}

/**
 * Checks that entries match the entries they refer to: an outcome its intent, a decision the call it decides on, a
 * call the decision that approved it, an erasure the deletion that caused it. The server signs entries according to
 * its stored state. So an entry based on forged state has a valid signature, but does not match the entry it refers
 * to.
 *
 * Entries that the walk found changed are not compared, because they are already reported.
 */
export class ReferenceCheck {
  readonly #database: ReadOnlyDatabase;
  readonly #workspaceId: number;
  readonly #report: VerificationReport;
  readonly #recent = new Map<number, VerifiedEntryFields>();
  /** By request id, the document that was deleted; null if the entry does not name it. */
  readonly #deletions = new Map<string, unknown>();
  /**
   * Arguments that people substituted for those presented: the seq of the entry that presented them, and the new
   * hash.
   */
  readonly #changes = new Set<string>();

  constructor(database: ReadOnlyDatabase, workspaceId: number, report: VerificationReport) {
    this.#database = database;
    this.#workspaceId = workspaceId;
    this.#report = report;
  }

  /** MUST be called with each step, in order. */
  take({ entry }: TreePosition): void {
    if (!entry) return;
    if (entry.phase === "outcome") this.#checkOutcome(entry);
    else if (entry.phase === "intent") this.#checkApproval(entry);
    else if (entry.action.startsWith("oversight.")) this.#checkDecision(entry);
    else if (entry.action === "payload.erase") this.#checkErasure(entry);
    else if (entry.action === "vault.delete" && entry.outcome === "succeeded") this.#keepDeletion(entry);
    if (mayBeNamed(entry)) this.#keep(entry);
  }

  #checkOutcome(entry: VerifiedEntryFields): void {
    const { ref } = entry;
    if (ref === undefined) return;
    const intent = this.#find(entry, ref);
    if (intent === null) return;
    const isIntent = intent?.phase === "intent" && intent.action === entry.action;
    if (isIntent && isSameCall(entry, intent) && intent.actor === entry.actor) {
      if (isPriceOf(entry, intent)) return;
      this.#differs(entry, `costs a different number of credits than its intent, entry ${ref}, says`);
      return;
    }
    this.#differs(entry, `refers to entry ${ref} as its intent, which is not the intent of the same call`);
  }

  #checkApproval(entry: VerifiedEntryFields): void {
    const seq = entry.detail?.approval_seq;
    if (seq === undefined) return;
    const approval = this.#find(entry, seq);
    if (approval === null) return;
    const decision: Decision = approval?.oversight ?? {};
    const hash = entry.detail?.arguments_hash;
    const isApproved = approval?.action === "oversight.approve" && approval.outcome === "succeeded";
    const isSame = isApproved && isSameCall(entry, approval);
    if (isSame && (hash === undefined || hash === decision.arguments_hash)) return;
    this.#differs(entry, `is a call based on approval ${String(seq)}, which did not approve it`);
  }

  /** Checks decisions on calls. Decisions on a task's output, and stops, have no call. */
  #checkDecision(entry: VerifiedEntryFields): void {
    const { decision, target_seq: seq, arguments_hash: hash }: Decision = entry.oversight ?? {};
    const isOnCall = DECISIONS.get(entry.action) === entry.outcome;
    if (!isOnCall || seq === undefined) return;
    const isChange = decision === "change";
    if (isChange && this.#changes.size < KEPT) this.#changes.add(`${String(seq)} ${String(hash)}`);
    const shown = this.#find(entry, seq);
    if (shown === null) return;
    const isShown = shown?.action === "tool.call" && shown.outcome === "pending" && isSameCall(entry, shown);
    if (isShown && (hash === shown.input_hash || isChange || this.#wasChangedTo(seq, hash))) return;
    this.#differs(entry, `decides on entry ${String(seq)}, which did not present this call to people`);
  }

  /** Whether somebody substituted arguments with this hash for those that entry `seq` presented. */
  #wasChangedTo(seq: unknown, hash: unknown): boolean {
    return this.#changes.size >= KEPT || this.#changes.has(`${String(seq)} ${String(hash)}`);
  }

  #checkErasure(entry: VerifiedEntryFields): void {
    const { reason, document } = entry.detail ?? {};
    if (reason !== "document_deleted" || this.#deletions.size >= KEPT) return;
    const deleted = this.#deletions.get(entry.request_id ?? "");
    if (deleted === null || deleted === document) return;
    this.#differs(entry, `erases texts for a deletion of ${JSON.stringify(document)} that nobody requested`);
  }

  #keepDeletion({ request_id: request, detail }: VerifiedEntryFields): void {
    if (request === undefined || this.#deletions.size >= KEPT) return;
    this.#deletions.set(request, detail?.document ?? null);
  }

  #keep(entry: VerifiedEntryFields): void {
    this.#recent.set(entry.seq, entry);
    if (this.#recent.size <= RECENT) return;
    for (const oldest of this.#recent.keys()) {
      this.#recent.delete(oldest);
      return;
    }
  }

  /**
   * The entry that another one refers to; undefined if the reference is not an earlier seq, null if the entry's
   * contents are unknown.
   */
  #find({ seq: from }: VerifiedEntryFields, seq: unknown): VerifiedEntryFields | undefined | null {
    if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 1 || seq >= from) return undefined;
    const known = this.#recent.get(seq);
    if (known) return known;
    const row = this.#database.get<EntryReferenceRow>(ROW, [this.#workspaceId, seq]);
    if (!(row?.bytes instanceof Uint8Array && row.leaf instanceof Uint8Array)) return null;
    const { fields, problem } = formOf(row.bytes);
    if (problem !== null || fields?.seq !== seq || !isEqual(TREE.leaf(row.bytes), row.leaf)) return null;
    return fields as VerifiedEntryFields;
  }

  #differs({ seq }: VerifiedEntryFields, what: string): void {
    this.#report.tampered(
      "reference_differs",
      `Entry ${seq} ${what}: it is based on data that somebody had changed, or earlier entries were changed.`,
      seq,
    );
  }
}

/** The outcome of a decision on a call, by action. */
const DECISIONS: ReadonlyMap<string, string> = new Map([
  ["oversight.approve", "succeeded"],
  ["oversight.deny", "succeeded"],
  ["oversight.expire", "denied"],
]);

function mayBeNamed({ phase, action, outcome }: VerifiedEntryFields): boolean {
  return phase === "intent" || outcome === "pending" || DECISIONS.get(action) === outcome;
}

/**
 * Whether the cost of an outcome, if any, is the one stated by its intent. A tool call costs its price. A lost model
 * call costs what was reserved for it, unless its tokens are known.
 */
function isPriceOf(
  { action, code, credits = 0, detail = {} }: VerifiedEntryFields,
  { detail: intent = {} }: VerifiedEntryFields,
): boolean {
  if (action === "tool.call") return credits === 0 || credits === intent.price;
  const isUnknown = action === "model.call" && code === "interrupted" && detail.input_tokens === undefined;
  return !isUnknown || credits === (intent.reserved ?? 0);
}

/** Whether two entries concern the same agent, task, model and tool, as far as both name them. */
function isSameCall(entry: VerifiedEntryFields, other: VerifiedEntryFields): boolean {
  const isSame = (a: string | undefined, b: string | undefined) =>
    a === undefined || b === undefined || a === b;
  if (!isSame(entry.agent, other.agent) || !isSame(entry.task, other.task)) return false;
  if (entry.action === "model.call" && !isSame(entry.model, other.model)) return false;
  // An outcome names its tool in redacted form, as in logs.
  return isSame(entry.tool, other.tool) || entry.tool === redact(other.tool ?? "").slice(0, TOOL_NAME_LIMIT);
}

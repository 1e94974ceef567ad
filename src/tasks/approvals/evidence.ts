import type { LedgerFaults } from "../../ledger/faults.ts";
import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import {
  type ApprovalEntry,
  type Contradiction,
  compareApproval,
  type EntryOf,
  type ProvenApproval,
} from "./proven.ts";
import type { StoredApproval } from "./rows.ts";

export interface ApprovalEvidenceParts {
  readonly lists: Pick<LedgerLists, "entries" | "read" | "size">;
  readonly faults: Pick<LedgerFaults, "report">;
}

/**
 * Compares approvals with the ledger. Approval rows are not signed, but ledger entries are: a decision counts because
 * an entry records it, with its person, for the same task, call, tool and arguments, never because a row names a
 * number.
 *
 * The comparison MUST precede the transaction that acts on the row. Entries written in between come from this process
 * itself. Comparing an approval costs about twice as much as reading its row, plus 1 ms for each block of entries not
 * checked since the start. A task without approvals costs nothing.
 */
export class ApprovalEvidence {
  readonly #parts: ApprovalEvidenceParts;

  constructor(parts: ApprovalEvidenceParts) {
    this.#parts = parts;
  }

  /**
   * All approvals MUST belong to one workspace.
   * @throws LedgerChanged if one of the rows contradicts the ledger, which is also reported
   */
  async prove(approvals: readonly StoredApproval[]): Promise<ProvenApproval[]> {
    const [first] = approvals;
    if (!first) return [];
    const entryOf = await this.#entriesOf(first.workspaceId, approvals);
    return approvals.map((approval) => {
      const compared = compareApproval(approval, entryOf);
      if ("problem" in compared) throw this.#report(approval, compared);
      return compared;
    });
  }

  /** The approvals, in any workspace, that agree with the ledger. All others are reported and left out. */
  async provenAmong(approvals: readonly StoredApproval[]): Promise<ProvenApproval[]> {
    const proven: ProvenApproval[] = [];
    for (const [workspaceId, some] of Map.groupBy(approvals, (approval) => approval.workspaceId)) {
      let entryOf: EntryOf;
      try {
        entryOf = await this.#entriesOf(workspaceId, some);
      } catch (error) {
        // Already reported when the ledger was read. The ledgers of other workspaces may be intact.
        if (!(error instanceof LedgerChanged)) throw error;
        continue;
      }
      for (const approval of some) {
        const compared = compareApproval(approval, entryOf);
        if ("problem" in compared) this.#report(approval, compared);
        else proven.push(compared);
      }
    }
    return proven;
  }

  /**
   * Refuses to use an approval twice: a person approves one call. MUST be called only for calls unknown to the store.
   * @throws LedgerChanged if the ledger has an intent for a call by this approval, because the call would be made
   *   twice
   */
  async requireUnused(approval: ProvenApproval): Promise<void> {
    const { workspaceId, agent, decisionSeq, status } = approval;
    if (status !== "approved" || decisionSeq === null) return;
    const { lists } = this.#parts;
    const span = { first: decisionSeq + 1, last: lists.size(workspaceId), order: "asc" } as const;
    if (span.first > span.last) return;
    for await (const entries of lists.read(workspaceId, { agent, action: "tool.call" }, span)) {
      for (const { seq, bytes } of entries) {
        const { phase, detail } = JSON.parse(bytes) as ApprovalEntry;
        if (phase !== "intent" || detail?.approval_seq !== decisionSeq) continue;
        throw this.#report(approval, { problem: "was used for a call that is no longer stored", seq });
      }
    }
  }

  async #entriesOf(workspaceId: number, approvals: readonly StoredApproval[]): Promise<EntryOf> {
    const entries = await this.#parts.lists.entries(workspaceId, approvals.flatMap(seqsOf));
    const read = new Map<number, ApprovalEntry>();
    for (const [seq, { bytes }] of entries) read.set(seq, JSON.parse(bytes) as ApprovalEntry);
    return (seq) => read.get(seq);
  }

  #report({ workspaceId, taskId, callId }: StoredApproval, { problem, seq }: Contradiction): LedgerChanged {
    const message = `the stored approval of the call ${callId} of ${taskId} ${problem}`;
    this.#parts.faults.report(workspaceId, { kind: "approval_changed", message, seq });
    return new LedgerChanged(message, seq);
  }
}

function seqsOf({ pendingSeq, firstSeq, argumentsSeq, decisionSeq, votes }: StoredApproval): number[] {
  return [
    pendingSeq,
    firstSeq,
    argumentsSeq,
    ...(decisionSeq === null ? [] : [decisionSeq]),
    ...votes.map(({ seq }) => seq),
  ];
}

import type { LedgerFaults } from "../../ledger/faults.ts";
import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import type { LedgerLists } from "../../ledger/lists.ts";
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
 * Compares rows of approvals with the ledger. A row is not signed, and its entries are: a decision counts because an entry of a
 * person says it, for the same task, call, tool and arguments, never because a row names a number.
 *
 * The comparison MUST come before the transaction that acts on the row: entries that this process writes in the meantime are its
 * own. Comparing an approval costs about twice as much as reading its row, and 1 ms more for each block of entries that was not checked
 * since the start. A task that has asked nobody pays nothing.
 */
export class ApprovalEvidence {
  readonly #parts: ApprovalEvidenceParts;

  constructor(parts: ApprovalEvidenceParts) {
    this.#parts = parts;
  }

  /** All MUST be of one workspace. @throws LedgerChanged if one of the rows is not what the ledger says; it is reported */
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

  /** Those that agree with the ledger, of any workspaces. All others are reported, and left out. */
  async provenAmong(approvals: readonly StoredApproval[]): Promise<ProvenApproval[]> {
    const proven: ProvenApproval[] = [];
    for (const [workspaceId, some] of Map.groupBy(approvals, (approval) => approval.workspaceId)) {
      let entryOf: EntryOf;
      try {
        entryOf = await this.#entriesOf(workspaceId, some);
      } catch (error) {
        // The reading has reported it. Other workspaces' ledgers may be whole.
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
   * A person approves one call. @throws LedgerChanged if the ledger has the intent of a call by this approval, though the store knows
   * of none: it would be made twice. MUST be asked only about calls that the store knows nothing of.
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
        throw this.#report(approval, { problem: "was used for a call that is not stored any more", seq });
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

import { takeTurn } from "../../base/inflow.ts";
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
    const proven: ProvenApproval[] = [];
    for (const approval of approvals) {
      const compared = await compareInTurn(approval, entryOf);
      if ("problem" in compared) throw this.#report(approval, compared);
      proven.push(compared);
    }
    return proven;
  }

  /** The approval, if it agrees with the ledger. Otherwise undefined, and the difference is reported. */
  async provenOrReported(approval: StoredApproval): Promise<ProvenApproval | undefined> {
    try {
      const [proven] = await this.prove([approval]);
      return proven;
    } catch (error) {
      if (error instanceof LedgerChanged) return undefined;
      throw error;
    }
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
    const span = { first: decisionSeq + 1, last: await lists.size(workspaceId), order: "asc" } as const;
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

/** Comparing a call hashes its arguments, which may be megabytes long. */
async function compareInTurn(
  approval: StoredApproval,
  entryOf: EntryOf,
): Promise<ProvenApproval | Contradiction> {
  const { workspaceId, arguments: text, reason } = approval;
  const turn = takeTurn(workspaceId, { bytes: (text?.length ?? 0) + (reason?.length ?? 0) });
  if (turn) await turn;
  return compareApproval(approval, entryOf);
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

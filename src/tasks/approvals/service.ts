import type { Caller } from "../../access/caller.ts";
import { timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { Locks } from "../../base/locks.ts";
import { definitionHash } from "../../connectors/tools/definition.ts";
import type { Call } from "../../gate/call.ts";
import type { EntryDraft, Oversight } from "../../ledger/entry.ts";
import type { Tx } from "../../store/db.ts";
import type { TaskParts } from "../parts.ts";
import type { QueuedTask } from "../queue/scheduler.ts";
import { findOpenTask, findTask, markDecided } from "../rows/tasks.ts";
import { type ApprovalFilter, listApprovals } from "./history.ts";
import { presentCall, shownBy } from "./present.ts";
import type { ProvenApproval } from "./proven.ts";
import {
  alreadyDecided,
  alreadyExpired,
  type DecisionRequest,
  refuseErased,
  refuseOthers,
  refuseUnnamed,
} from "./refusals.ts";
import {
  type Approval,
  changeArguments,
  findApproval,
  nextExpired,
  type StoredApproval,
  settleApproval,
} from "./rows.ts";
import { tellReaders } from "./tell-readers.ts";
import { addVote } from "./votes.ts";

/** The tool or its connector differs from the one presented. Thrown to roll back the decision's transaction. */
class DefinitionChanged extends Error {
  override readonly name = "DefinitionChanged";
}

export type DeskParts = Pick<
  TaskParts,
  | "db"
  | "ledger"
  | "approvals"
  | "hub"
  | "claims"
  | "clock"
  | "tools"
  | "log"
  | "hooks"
  | "signals"
  | "approvalExpiresMs"
> & {
  /** Resumes a task after a decision, once it is queued in the store. */
  resumeTask(queued: QueuedTask): Promise<void>;
  /** Whether the task has already been ended, even if its end is not written yet. */
  isEnding(taskId: string): boolean;
};

interface SettledDecision {
  /** False if the call waits for another person. */
  readonly isSettled: boolean;
  /** The task to be resumed, if any. */
  readonly queued: QueuedTask | null;
}

/** Decides pending approvals. */
export class ApprovalService {
  readonly #parts: DeskParts;
  /** A decision holds the call's arguments in memory, so a workspace's decisions follow one another. */
  readonly #deciding = new Locks();
  #sweeping = false;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  /**
   * The approvals that the caller may see, newest first, starting before the entry `before`. @throws LedgerChanged if
   * one of them contradicts the ledger
   */
  async list(
    { workspaceId, agent }: Caller,
    filter: Omit<ApprovalFilter, "agentId">,
    limit: number,
    before: number | undefined,
  ): Promise<{ readonly approvals: readonly ProvenApproval[]; readonly more: boolean }> {
    const { db, approvals: evidence } = this.#parts;
    if (agent && filter.agent !== undefined && filter.agent !== agent.name) {
      return { approvals: [], more: false };
    }
    const own = agent ? { ...filter, agent: agent.name, agentId: agent.id } : filter;
    const { approvals, more } = await listApprovals(db, workspaceId, own, limit, before);
    return { approvals: await evidence.prove(approvals), more };
  }

  /**
   * Records a person's decision. It is bound to the hash of the arguments shown, and to the hash of the tool and its
   * connector. If the tool has changed since the call was presented, the call is not approved but presented again.
   * @returns whether this settles the call; otherwise it waits for another person
   * @throws Problem 404 `not_found`, 403 `agent_forbidden`, `person_required`, 409 `approval_decided`,
   *   `approval_changed`, `approval_erased`, 422; LedgerChanged if the call contradicts the ledger
   */
  async decide(
    call: Call,
    taskId: string,
    callId: string,
    request: DecisionRequest,
  ): Promise<{ readonly approval: Approval; readonly isSettled: boolean }> {
    const { workspaceId, agent } = call.caller;
    if (agent) {
      throw new Problem(
        "agent_forbidden",
        `This token acts as the agent ${agent.name}, but a person has to decide. Use a person's token.`,
      );
    }
    const { found, settled } = await this.#deciding.run(workspaceId, () =>
      this.#decide(call, taskId, callId, request),
    );
    if (settled.queued) await this.#parts.resumeTask(settled.queued);
    return { approval: found, isSettled: settled.isSettled };
  }

  async #decide(
    call: Call,
    taskId: string,
    callId: string,
    request: DecisionRequest,
  ): Promise<{ readonly found: Approval; readonly settled: SettledDecision }> {
    const { db, clock, approvals: evidence } = this.#parts;
    const { workspaceId } = call.caller;
    const found = await findApproval(db, workspaceId, taskId, callId);
    if (!found) throw new Problem("not_found", `There is no call ${JSON.stringify(callId)} to decide.`);
    call.about({ task: found.taskId });
    const [proven] = await evidence.prove([found]);
    if (!proven) throw new Error("an approval was neither proven nor refused");
    call.about({ agent: proven.agent, tool: proven.tool });
    const changed = this.#changedArguments(found, request);
    const settled = await this.#bound(proven, () =>
      call.commit(async (tx, record) => {
        const approval = await findApproval(tx, workspaceId, taskId, callId);
        if (approval?.status !== "pending") throw alreadyDecided(approval);
        if (approval.expiresAt <= clock.now()) throw alreadyExpired();
        // The task was ended while the store could not be written. Its end came first, though it is written later.
        if (this.#parts.isEnding(taskId)) throw alreadyDecided(undefined);
        refuseOthers(approval, request);
        if (request.decision === "approve") {
          refuseUnnamed(call.caller, approval);
          refuseErased(approval, changed);
          this.#refuseOtherDefinition(approval, isBound(approval, proven));
        }
        const { definitionHash } = approval;
        const seq = await record({
          ...(definitionHash === null ? {} : { detail: { definition_hash: definitionHash } }),
          input: changed,
          output: request.reason,
          oversight: this.#oversight(
            call,
            withProvenTime(approval, proven),
            changed === undefined ? request.decision : "change",
          ),
        });
        if (changed !== undefined) {
          const { argumentsHash } = await shownBy(tx, workspaceId, seq);
          changeArguments(tx, approval, seq, argumentsHash);
        }
        tx.onCommit(() => this.#parts.signals.approvalChanged.emit({ workspaceId, task: taskId, callId }));
        return this.#settle(tx, approval, request.decision, call, seq);
      }),
    );
    return { found, settled };
  }

  /** @throws Problem 409 `approval_changed` after presenting a call again because its tool has changed */
  async #bound<Result>(shown: ProvenApproval, decide: () => Promise<Result>): Promise<Result> {
    try {
      return await decide();
    } catch (error) {
      if (!(error instanceof DefinitionChanged)) throw error;
    }
    await this.#parts.db.tx(shown.workspaceId, (tx) => this.#presentAgain(tx, shown));
    throw new Problem(
      "approval_changed",
      "The tool or its connector has changed since the call was presented. Review the call again, then approve it.",
    );
  }

  /**
   * A removed tool passes: it is not called, whatever is decided.
   * @throws DefinitionChanged if the call must be presented again; Problem 409 `approval_erased` if its arguments
   *   were erased and can no longer be shown
   */
  #refuseOtherDefinition(
    { workspaceId, tool, definitionHash, arguments: text }: StoredApproval,
    isComplete: boolean,
  ): void {
    const now = this.#parts.tools.definitionOf(workspaceId, tool);
    if (now === undefined || (isComplete && now === definitionHash)) return;
    if (text === null) {
      throw new Problem(
        "approval_erased",
        "The tool or its connector has changed. The call's arguments were erased, so it cannot be presented again. Deny it.",
      );
    }
    throw new DefinitionChanged();
  }

  /** Presents a call again with the current tool, unless it has just been presented again. */
  async #presentAgain(tx: Tx, shown: ProvenApproval): Promise<void> {
    const { workspaceId, taskId, callId } = shown;
    const { ledger, tools, clock, hooks, signals, approvalExpiresMs: expiresMs } = this.#parts;
    const approval = await findApproval(tx, workspaceId, taskId, callId);
    const task = await findTask(tx, workspaceId, taskId);
    if (approval?.status !== "pending" || approval.arguments === null || !task) return;
    const tool = tools.catalogue.find(workspaceId, approval.tool);
    if (!tool || (isBound(approval, shown) && definitionHash(tool) === approval.definitionHash)) return;
    const { agent, required, arguments: input } = approval;
    const draft = { channel: "system", actor: task.createdBy, tier: task.tier } as const;
    const presentation = {
      task,
      callId,
      arguments: input,
      tool,
      agent,
      required,
      now: clock.now(),
      expiresMs,
      draft,
    };
    await presentCall(tx, ledger, presentation, approval);
    const data = { call_id: callId, tool: tool.name, arguments: JSON.parse(input) as unknown };
    await tellReaders(this.#parts.hub, tx, approval, "approval.required", data);
    await hooks.approvalRequired(tx, { workspaceId, task: taskId, callId, agent, tool: tool.name });
    tx.onCommit(() => signals.approvalChanged.emit({ workspaceId, task: taskId, callId }));
  }

  /**
   * Denies approvals that nobody decided in time. Called every few seconds. A row that contradicts the ledger is
   * reported and left unchanged, so only calls that were presented can expire.
   */
  async expire(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      const { db, clock, approvals: evidence } = this.#parts;
      const now = clock.now();
      let due = await nextExpired(db, now, null);
      for (; due; due = await nextExpired(db, now, due)) {
        const approval = await evidence.provenOrReported(due);
        if (!approval) continue;
        const { workspaceId } = approval;
        const queued = await db.tx(workspaceId, (tx) => this.#expireOne(tx, approval));
        if (queued) await this.#parts.resumeTask(queued);
      }
    } finally {
      this.#sweeping = false;
    }
  }

  async #expireOne(tx: Tx, proven: ProvenApproval): Promise<QueuedTask | null> {
    const { workspaceId, taskId, callId } = proven;
    const { ledger, clock, signals } = this.#parts;
    const approval = await findApproval(tx, workspaceId, taskId, callId);
    // It may since have been presented again.
    if (approval?.status !== "pending" || approval.expiresAt > clock.now()) return null;
    const { presentedAt } = withProvenTime(approval, proven);
    tx.onCommit(() => signals.approvalChanged.emit({ workspaceId, task: taskId, callId }));
    const draft: EntryDraft = {
      phase: "single",
      action: "oversight.expire",
      outcome: "denied",
      code: "expired",
      channel: "system",
      actor: "system",
      agent: approval.agent,
      task: taskId,
      tool: approval.tool,
      oversight: {
        person: "nobody",
        decision: "expire",
        presented_at: timestamp(presentedAt),
        decided_at: timestamp(clock.now()),
        target_seq: approval.pendingSeq,
        arguments_hash: approval.argumentsHash,
      },
    };
    const seq = await ledger.append(tx, workspaceId, draft);
    settleApproval(tx, approval, "expired", seq);
    return this.#queue(tx, approval, "deny", "system");
  }

  /** @returns whether the call is settled, or needs another person's approval; and the task to resume */
  async #settle(
    tx: Tx,
    approval: Approval,
    decision: "approve" | "deny",
    { caller }: Call,
    seq: number,
  ): Promise<SettledDecision> {
    if (decision === "approve") {
      const votes = await addVote(tx, approval, caller.person ?? caller.name, seq);
      if (votes === null) {
        throw new Problem(
          "approval_decided",
          "You have already approved this call. Another person has to approve it too.",
        );
      }
      if (votes < approval.required) return { isSettled: false, queued: null };
    }
    settleApproval(tx, approval, decision === "approve" ? "approved" : "denied", seq);
    return { isSettled: true, queued: await this.#queue(tx, approval, decision, caller.actor) };
  }

  /**
   * Queues the task again and notifies its readers.
   * @returns the task if this node has to resume it
   */
  async #queue(
    tx: Tx,
    approval: Approval,
    decision: "approve" | "deny",
    actor: string,
  ): Promise<QueuedTask | null> {
    const { workspaceId, taskId, callId } = approval;
    const task = await findOpenTask(tx, workspaceId, taskId);
    if (!task || !(await markDecided(tx, workspaceId, taskId))) return null;
    tx.onCommit(() => this.#parts.signals.changed.emit({ workspaceId, task: taskId }));
    const data = { call_id: callId, decision, actor };
    await tellReaders(this.#parts.hub, tx, approval, "approval.decided", data);
    const isOwn = await this.#parts.claims.resume(tx, workspaceId, taskId);
    return isOwn ? { workspaceId, taskId, agentId: task.agentId } : null;
  }

  #oversight({ caller }: Call, approval: Approval, decision: string): Oversight {
    const { person, name, role } = caller;
    return {
      person: person ?? name,
      ...(role === null ? {} : { role }),
      decision,
      presented_at: timestamp(approval.presentedAt),
      decided_at: timestamp(this.#parts.clock.now()),
      target_seq: approval.pendingSeq,
      arguments_hash: approval.argumentsHash,
    };
  }

  /**
   * JSON of the arguments that replace the requested ones.
   * @throws Problem 422 if the tool does not accept them
   */
  #changedArguments(approval: Approval, { decision, arguments: given }: DecisionRequest): string | undefined {
    if (given === undefined) return undefined;
    const fault = (path: string, message: string) =>
      new Problem("validation_failed", `${path}: ${message}`, { errors: [{ path, message }] });
    if (decision === "deny") throw fault("/arguments", "can only be sent to approve a call");
    const tool = this.#parts.tools.catalogue.find(approval.workspaceId, approval.tool);
    if (!tool) throw fault("/arguments", `the tool ${approval.tool} no longer exists`);
    const text = JSON.stringify(given);
    const faults = tool.validate(JSON.parse(text));
    if (faults.length > 0) {
      const errors = faults.map(({ path, message }) => ({ path: `/arguments${path}`, message }));
      const [first] = errors;
      throw new Problem("validation_failed", `${first?.path}: ${first?.message}`, { errors });
    }
    return text;
  }
}

/**
 * Whether the entry that shows the call names everything that a decision is bound to. Entries written since `proven`
 * always do.
 */
function isBound({ pendingSeq }: Approval, proven: ProvenApproval): boolean {
  return proven.isBound || pendingSeq !== proven.pendingSeq;
}

/** The row, with the ledger's time of presentation. */
function withProvenTime<Row extends Approval>(approval: Row, proven: ProvenApproval): Row {
  const isSame = approval.pendingSeq === proven.pendingSeq;
  return isSame ? { ...approval, presentedAt: proven.presentedAt } : approval;
}

import type { Caller } from "../../access/caller.ts";
import { timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { definitionHash } from "../../connectors/tool-definition.ts";
import type { Call } from "../../gate/call.ts";
import type { Draft, Oversight } from "../../ledger/entry.ts";
import type { Tx } from "../../store/db.ts";
import { saveEvents } from "../event-store.ts";
import { encodeFrame, type TaskEvents } from "../frames.ts";
import type { TaskParts } from "../parts.ts";
import type { Queued } from "../scheduler.ts";
import { findOpenTask, findTask, markDecided, raiseEventCeiling } from "../store.ts";
import { type ApprovalFilter, type ApprovalPage, listApprovals } from "./history.ts";
import { argumentsHashOf, presentCall } from "./present.ts";
import {
  type Approval,
  addVote,
  changeArguments,
  expiredApprovals,
  findApproval,
  settleApproval,
} from "./rows.ts";

export interface DecisionRequest {
  readonly decision: "approve" | "deny";
  readonly reason?: string;
  /** In place of those that were asked for; with `approve` alone. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  /** The arguments that the person was shown, by their hash: others are not decided on. */
  readonly argumentsHash?: string;
  /** The definition of the tool that the person was shown, by its hash: another is not decided on. */
  readonly definitionHash?: string;
}

/** The tool or its connector is not what was presented: thrown out of the decision's transaction, of which nothing lasts. */
class DefinitionChanged extends Error {
  override readonly name = "DefinitionChanged";
}

export type DeskParts = Pick<
  TaskParts,
  "db" | "ledger" | "hub" | "clock" | "tools" | "log" | "watch" | "approvalExpiresMs"
> & {
  /** Lets a task go on that was decided about, once it is queued in the store. */
  goOn(queued: Queued): Promise<void>;
  /** Whether somebody has ended the task already, though its end may not be written yet. */
  isEnding(taskId: string): boolean;
};

/** Expired ones that one transaction each settles, in one look. */
const EXPIRED_AT_ONCE = 100;
/** Event ids kept free above the event of a decision, which is written while no run looks after them. */
const CEILING_STEP = 16;

/** Where people decide on calls that wait for them. */
export class ApprovalDesk {
  readonly #parts: DeskParts;
  #sweeping = false;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  /** Those that the caller may see, the newest first, of entries before `before`. */
  async list(
    { workspaceId, agent }: Caller,
    filter: Omit<ApprovalFilter, "agentId">,
    limit: number,
    before: number | undefined,
  ): Promise<ApprovalPage> {
    const { db } = this.#parts;
    if (!agent) return listApprovals(db, workspaceId, filter, limit, before);
    if (filter.agent !== undefined && filter.agent !== agent.name) return { approvals: [], more: false };
    return listApprovals(db, workspaceId, { ...filter, agent: agent.name, agentId: agent.id }, limit, before);
  }

  /**
   * A person's decision. It is bound to the hash of the arguments that were shown, and to that of the tool and its connector. A
   * call whose tool has changed since it was presented is not approved: it is presented again.
   * @returns whether the call is settled by it, or still waits for another person
   * @throws Problem 404 `not_found`, 403 `agent_forbidden`, `person_required`, 409 `approval_decided`, 409 `approval_changed`, 422
   */
  async decide(
    call: Call,
    taskId: string,
    callId: string,
    request: DecisionRequest,
  ): Promise<{ readonly approval: Approval; readonly isSettled: boolean }> {
    const { db, clock } = this.#parts;
    const { workspaceId, agent } = call.caller;
    if (agent) {
      throw new Problem("agent_forbidden", `This token acts as ${agent.name}: a person has to decide.`);
    }
    const found = await findApproval(db, workspaceId, taskId, callId);
    if (!found) throw new Problem("not_found", `There is no call ${JSON.stringify(callId)} to decide on.`);
    call.about({ task: found.taskId, agent: found.agent, tool: found.tool });
    const changed = this.#changedArguments(found, request);
    const settled = await this.#bound(found, () =>
      call.commit(async (tx, record) => {
        const approval = await findApproval(tx, workspaceId, taskId, callId);
        if (approval?.status !== "pending") throw decided(approval);
        if (approval.expiresAt <= clock.now()) throw expired();
        // It was ended while the store could not be written: that came first, and is written late.
        if (this.#parts.isEnding(taskId)) throw decided(undefined);
        refuseOthers(approval, request);
        if (request.decision === "approve") refuseUnnamed(call.caller, approval);
        this.#refuseOtherDefinition(approval, request);
        const { definitionHash } = approval;
        const seq = await record({
          ...(definitionHash === null ? {} : { detail: { definition_hash: definitionHash } }),
          input: changed,
          output: request.reason,
          oversight: this.#oversight(call, approval, changed === undefined ? request.decision : "change"),
        });
        if (changed !== undefined) {
          await changeArguments(tx, approval, seq, await argumentsHashOf(tx, workspaceId, seq));
        }
        tx.onCommit(() => this.#parts.watch.approvalChanged(workspaceId, taskId, callId));
        return this.#settle(tx, approval, request.decision, call, seq);
      }),
    );
    if (settled.queued) await this.#parts.goOn(settled.queued);
    return { approval: found, isSettled: settled.isSettled };
  }

  /** @throws Problem 409 `approval_changed` once a call whose tool has changed is presented again */
  async #bound<Result>(
    { workspaceId, taskId, callId }: Approval,
    decide: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await decide();
    } catch (error) {
      if (!(error instanceof DefinitionChanged)) throw error;
    }
    await this.#parts.db.tx((tx) => this.#presentAgain(tx, workspaceId, taskId, callId));
    throw new Problem(
      "approval_changed",
      "The tool or its connector has changed since the call was presented. Review the call again, then approve it.",
    );
  }

  /**
   * A denial needs no tool to be what it was. One that is gone is not called, whatever is decided.
   * @throws DefinitionChanged
   */
  #refuseOtherDefinition(
    { workspaceId, tool, definitionHash }: Approval,
    { decision }: DecisionRequest,
  ): void {
    if (decision === "deny") return;
    const now = this.#parts.tools.definitionOf(workspaceId, tool);
    if (now !== undefined && now !== definitionHash) throw new DefinitionChanged();
  }

  /** Presents a call with the tool as it is now. One whose arguments were erased can only be denied. */
  async #presentAgain(tx: Tx, workspaceId: number, taskId: string, callId: string): Promise<void> {
    const { ledger, tools, clock, watch, approvalExpiresMs: expiresMs } = this.#parts;
    const approval = await findApproval(tx, workspaceId, taskId, callId);
    const task = await findTask(tx, workspaceId, taskId);
    if (approval?.status !== "pending" || approval.arguments === null || !task) return;
    const tool = tools.catalogue.find(workspaceId, approval.tool);
    if (!tool || definitionHash(tool) === approval.definitionHash) return;
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
    await this.#tell(tx, approval, "approval.required", data);
    await watch.approvalRequired(tx, { workspaceId, task: taskId, callId, agent, tool: tool.name });
    tx.onCommit(() => watch.approvalChanged(workspaceId, taskId, callId));
  }

  /** Denies what nobody has decided on in time. Called every few seconds. */
  async expire(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      const { db, clock } = this.#parts;
      for (;;) {
        const due = await expiredApprovals(db, clock.now(), EXPIRED_AT_ONCE);
        for (const approval of due) {
          const queued = await db.tx((tx) => this.#expireOne(tx, approval));
          if (queued) await this.#parts.goOn(queued);
        }
        // Each of them is settled by now, so that this comes to an end.
        if (due.length < EXPIRED_AT_ONCE) return;
      }
    } finally {
      this.#sweeping = false;
    }
  }

  async #expireOne(tx: Tx, { workspaceId, taskId, callId }: Approval): Promise<Queued | null> {
    const { ledger, clock, watch } = this.#parts;
    const approval = await findApproval(tx, workspaceId, taskId, callId);
    if (approval?.status !== "pending") return null;
    tx.onCommit(() => watch.approvalChanged(workspaceId, taskId, callId));
    const draft: Draft = {
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
        presented_at: timestamp(approval.presentedAt),
        decided_at: timestamp(clock.now()),
        target_seq: approval.pendingSeq,
        arguments_hash: approval.argumentsHash,
      },
    };
    const seq = await ledger.append(tx, workspaceId, draft);
    await settleApproval(tx, approval, "expired", seq);
    return this.#queue(tx, approval, "deny", "system");
  }

  /** @returns whether it is settled, or another person has to say yes as well; and the task that goes on */
  async #settle(
    tx: Tx,
    approval: Approval,
    decision: "approve" | "deny",
    { caller }: Call,
    seq: number,
  ): Promise<{ readonly isSettled: boolean; readonly queued: Queued | null }> {
    if (decision === "approve") {
      const votes = await addVote(tx, approval, caller.person ?? caller.name, seq);
      if (votes === null) {
        throw new Problem("approval_decided", "You have approved it already: another person has to as well.");
      }
      if (votes < approval.required) return { isSettled: false, queued: null };
    }
    await settleApproval(tx, approval, decision === "approve" ? "approved" : "denied", seq);
    return { isSettled: true, queued: await this.#queue(tx, approval, decision, caller.actor) };
  }

  /** The task goes back into the queue, and its readers are told. */
  async #queue(
    tx: Tx,
    approval: Approval,
    decision: "approve" | "deny",
    actor: string,
  ): Promise<Queued | null> {
    const { workspaceId, taskId, callId } = approval;
    const task = await findOpenTask(tx, workspaceId, taskId);
    if (!task || !(await markDecided(tx, workspaceId, taskId))) return null;
    tx.onCommit(() => this.#parts.watch.taskChanged(workspaceId, taskId));
    await this.#tell(tx, approval, "approval.decided", { call_id: callId, decision, actor });
    return { workspaceId, taskId, agentId: task.agentId };
  }

  /** Tells the readers of a task that waits, once it is on disk. */
  async #tell<Name extends "approval.decided" | "approval.required">(
    tx: Tx,
    { workspaceId, taskId }: Approval,
    name: Name,
    data: TaskEvents[Name],
  ): Promise<void> {
    const log = this.#parts.hub.find(taskId);
    if (!log) return;
    const from = log.savedUpTo;
    // Nobody else writes while the task waits: the frame that is stored is the one that readers get once it is.
    const id = log.nextId;
    const frame = encodeFrame(id, name, data);
    await saveEvents(tx, workspaceId, taskId, from + 1, [...log.after(from), frame]);
    await raiseEventCeiling(tx, workspaceId, taskId, id + CEILING_STEP);
    tx.onCommit(() => {
      // The process stops, and its streams have ended: who resumes reads it from the store.
      if (log.closed) return;
      log.publish(name, data);
      log.saved(id);
    });
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

  /** JSON of arguments in place of those asked for. @throws Problem 422 for what the tool does not take */
  #changedArguments(approval: Approval, { decision, arguments: given }: DecisionRequest): string | undefined {
    if (given === undefined) return undefined;
    const fault = (path: string, message: string) =>
      new Problem("validation_failed", `${path}: ${message}`, { errors: [{ path, message }] });
    if (decision === "deny") throw fault("/arguments", "belong to an approval");
    const tool = this.#parts.tools.catalogue.find(approval.workspaceId, approval.tool);
    if (!tool) throw fault("/arguments", `the tool ${approval.tool} is not there any more`);
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
 * What was shown is what is decided on. Who names no hash means the arguments that were asked for at first: those that
 * somebody has put in their place are approved by their hash alone.
 * @throws Problem 409 `approval_changed`
 */
function refuseOthers(
  approval: Approval,
  { decision, argumentsHash, definitionHash: shown }: DecisionRequest,
): void {
  if (shown !== undefined && shown !== approval.definitionHash) throw isOther();
  if (argumentsHash !== undefined && argumentsHash !== approval.argumentsHash) throw isOther();
  const isChanged = approval.argumentsSeq !== approval.pendingSeq;
  if (argumentsHash === undefined && isChanged && decision === "approve") throw isOther();
}

/**
 * If several people have to approve, only a token that names its person counts: other tokens do not identify a person.
 * @throws Problem 403 `person_required`
 */
function refuseUnnamed({ person }: Caller, { required }: Approval): void {
  if (required === 1 || person !== null) return;
  throw new Problem(
    "person_required",
    `${required} different people have to approve this call: use a token that names its person.`,
  );
}

function decided(approval: Approval | undefined): Problem {
  const status = approval?.status;
  if (status === "expired") return expired();
  if (status === "approved" || status === "denied") {
    return new Problem("approval_decided", `The call was ${status} already.`);
  }
  return new Problem("approval_decided", "The call is not wanted any more: its task has ended.");
}

function expired(): Problem {
  return new Problem("approval_decided", "Nobody decided in time: the call counts as denied.");
}

function isOther(): Problem {
  return new Problem(
    "approval_changed",
    "What is asked has changed. Review the call again, and send its new arguments_hash and definition_hash.",
  );
}

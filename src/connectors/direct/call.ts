import type { Agent, Agents } from "../../access/agents.ts";
import type { Workspaces } from "../../access/workspaces.ts";
import type { JsonObject } from "../../agents/index.ts";
import type { Clock } from "../../base/clock.ts";
import { describeArgumentErrors, type FieldError, Problem } from "../../base/errors.ts";
import type { Ids } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Budgets } from "../../gate/budget.ts";
import type { Call } from "../../gate/call.ts";
import type { LateOutcomes } from "../../gate/direct/late-outcomes.ts";
import { beginCall, type PaidCall } from "../../gate/direct/open-calls.ts";
import { agentRemoved, draining, interrupted, refuseStopped } from "../../gate/direct/refusals.ts";
import { CallInterruption, type RunningCalls } from "../../gate/direct/running-calls.ts";
import {
  lateSettling,
  settleDirectCall,
  usageRecordOf,
  withoutOutput,
} from "../../gate/direct/settle-direct.ts";
import { RightsChanged } from "../../gate/rights-changed.ts";
import { UNKNOWN_TOOL } from "../../gate/usage/record.ts";
import type { UsageTally } from "../../gate/usage/tally.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { type Db, StoreUnavailable } from "../../store/db.ts";
import type { CatalogueTool } from "../catalogue.ts";
import { type Invocation, invoke } from "../invoke.ts";
import { tooMany } from "../refusals.ts";
import { EVERY_TOOL, isToolName, type ToolRegistry } from "../registry.ts";
import type { ToolAnswer, ToolProgress } from "../source.ts";
import { deny, failedAnswer, outputOf } from "./answer.ts";
import { admitAllowed, requireAllowed } from "./rights.ts";

export interface DirectCallParts {
  readonly db: Db;
  readonly running: RunningCalls;
  readonly late: LateOutcomes;
  readonly usage: UsageTally;
  readonly budgets: Budgets;
  readonly ledger: Ledger;
  readonly agents: Agents;
  readonly workspaces: Pick<Workspaces, "isStopped">;
  readonly registry: ToolRegistry;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

export interface DirectCallContext {
  /** Ends this one call. Aborted by the caller when it gives up, and by a stop. */
  readonly abort: AbortController;
  readonly progress?: (progress: ToolProgress) => void;
  /** Receives the errors in the arguments before the call is answered with text for a model. */
  readonly faulty?: (faults: readonly FieldError[]) => void;
}

/** A call that needs a person's approval before it is made. */
export interface ApprovalToolCall {
  readonly agent: Agent;
  /** Its name. The agent and the token may use it. */
  readonly tool: string;
  /** Valid for the tool's schema. */
  readonly input: JsonObject;
  /** `input` as JSON text. */
  readonly text: string;
}

/** A call that has become a task, which continues even if nobody waits for it. */
export interface ApprovalTask {
  /** The task's id. */
  readonly task: string;
  /** The tool's answer once the task has ended; null if the tool was not called, or not by this process. */
  answer(): ToolAnswer | null;
  /** MUST be called when the caller stops waiting. */
  leave(): void;
}

/** Takes the calls that need approval. */
export interface ApprovalTasks {
  /** @throws Problem before anything is written */
  dispatch(call: Call, asked: ApprovalToolCall): Promise<ApprovalTask>;
}

/** Maximum number of in-flight calls of one workspace. Each may hold a pending answer in memory. */
const CALLS_PER_WORKSPACE = 1_000;

/**
 * Tool calls made directly by a caller, outside of tasks. As in a task, each is checked, its intent is on disk before
 * anything is sent, and its outcome is on disk before it is answered.
 */
export class DirectCalls {
  readonly #parts: DirectCallParts;
  #asked: ApprovalTasks | null = null;

  constructor(parts: DirectCallParts) {
    this.#parts = parts;
  }

  /**
   * Sets the receiver of calls that need approval. Called once, by the composition root, since that layer is above
   * this one.
   */
  askThrough(asked: ApprovalTasks): void {
    this.#asked = asked;
  }

  /** The agent that the caller acts as. @throws Problem 404 `agent_not_found`, 409 `agent_stopped` */
  async #agentOf({ caller }: Call): Promise<Agent | null> {
    if (!caller.agent) {
      refuseStopped(this.#parts, caller.workspaceId, null);
      return null;
    }
    const agent = await this.#parts.agents.byId(caller.workspaceId, caller.agent.id);
    if (!agent) throw agentRemoved();
    refuseStopped(this.#parts, caller.workspaceId, agent);
    return agent;
  }

  /**
   * Calls a tool by its name, `<connector>.<tool>`. Errors of the tool, its connector or the arguments become an
   * answer with `isError`, for a model to read. A call that needs a person's approval becomes a task and is not
   * awaited.
   * @throws Problem `unknown_tool`, `tool_forbidden`, `agent_stopped`, `credits_exhausted`, `draining`, before
   *   anything is sent
   */
  async call(
    call: Call,
    name: string,
    input: JsonObject,
    context: DirectCallContext,
  ): Promise<ToolAnswer | ApprovalTask> {
    for (;;) {
      try {
        return await this.#callAsAllowed(call, name, input, context);
      } catch (error) {
        if (error instanceof RightsChanged) continue;
        if (error instanceof Problem) this.#countRefused(call, name, error);
        throw error;
      }
    }
  }

  /** Counts a call that names no tool, or a forbidden one, as denied in the statistics, as for a task's calls. */
  #countRefused({ caller: { workspaceId, agent } }: Call, name: string, { code }: Problem): void {
    if (code !== "tool_forbidden" && code !== "unknown_tool") return;
    const { usage, clock } = this.#parts;
    usage.note({
      ...{ workspaceId, agentId: agent?.id ?? null, kind: "tool", outcome: "denied" },
      name: code === "unknown_tool" ? UNKNOWN_TOOL : name,
      ...{ at: clock.now(), durationMs: 0 },
    });
  }

  /** @throws RightsChanged if the call must be checked again */
  async #callAsAllowed(
    call: Call,
    name: string,
    input: JsonObject,
    context: DirectCallContext,
  ): Promise<ToolAnswer | ApprovalTask> {
    const { db, running, late, budgets, registry, clock, ids } = this.#parts;
    const { workspaceId, actor, scopes } = call.caller;
    if (isToolName(name)) call.about({ tool: name });
    if (running.isDraining) throw draining();
    const seen = this.#parts.agents.revision.settled;
    const agent = await this.#agentOf(call);
    const tool = registry.get(workspaceId, name, { tools: agent?.tools ?? EVERY_TOOL, scopes });
    const price = budgets.toolPrice(tool.name);
    const text = JSON.stringify(input);
    const faults = tool.validate(input);
    if (faults.length > 0) {
      context.faulty?.(faults);
      const refused = await deny(call, text, "invalid_arguments", describeArgumentErrors(faults));
      const denied = { kind: "tool", name: tool.name, outcome: "denied", durationMs: 0 } as const;
      this.#parts.usage.note(usageRecordOf({ workspaceId, agent }, denied, clock.now()));
      return refused;
    }
    if (agent && registry.needsApproval(workspaceId, name, agent.approvals)) {
      if (!this.#asked) throw new Error("nothing handles the calls that need approval");
      // Do not ask a person to approve an unaffordable call. The task that it becomes reserves the budget.
      if (price > 0) await budgets.check(db, { workspaceId, agent });
      return this.#asked.dispatch(call, { agent, tool: tool.name, input, text });
    }
    if (running.hasAtLeast(CALLS_PER_WORKSPACE, workspaceId)) throw tooMany(CALLS_PER_WORKSPACE);
    // From here on, a stop or a drain finds the call. Check for one that arrived while the agent was being read.
    if (running.isDraining) throw draining();
    refuseStopped(this.#parts, workspaceId, agent);

    const agentId = agent?.id ?? null;
    // Only a call that costs something waits, for its budget.
    const budgetWait = price === 0 ? null : new AbortController();
    const end = running.add({ workspaceId, agentId, abort: context.abort, wait: budgetWait });
    const callId = ids("call");
    /** The call was sent, but its charge is not on disk. */
    let isOwed = false;
    try {
      const { signal } = context.abort;
      const wait = budgetWait ? AbortSignal.any([signal, budgetWait.signal]) : signal;
      const paid = budgetWait ? this.#paid(call, { tool, agent, owner: callId, price, signal: wait }) : null;
      const free = admitAllowed(this.#parts, call.caller, { tool, agent, seen });
      const intent = await beginCall(call, text, paid, free).catch((error: unknown) => {
        if (!wait.aborted || error !== wait.reason) throw error;
        return null;
      });
      if (intent === null) return await notBegun(call, text, wait, agent);
      const began = clock.monotonic();
      const { progress } = context;
      const own = { signal, callId, via: call.via };
      const source = progress ? { ...own, progress } : own;
      const invocation = await invoke(tool, { workspaceId, agentId, actor }, input, source, this.#parts.log);
      const { answer, outcome, code } = outcomeOf(invocation, signal);
      const isSent = invocation.status !== "aborted" || invocation.isSent;
      const durationMs = clock.monotonic() - began;
      const draft: EntryDraft = {
        ...call.draft(outcome, code),
        phase: "outcome",
        ref: intent,
        output: outputOf(answer),
        detail: { duration_ms: Math.round(durationMs) },
      };
      const ended = {
        payer: { workspaceId, agent },
        credits: isSent ? price : 0,
        owner: callId,
        usage: { kind: "tool", name: tool.name, outcome: countedOutcome(outcome, isSent), durationMs },
      } as const;
      try {
        await settleDirectCall(this.#parts, { ...ended, entry: draft });
      } catch (cause) {
        // Until it is charged it stays reserved, so that others cannot spend it.
        isOwed = isSent;
        if (!(cause instanceof StoreUnavailable)) throw cause;
        const unread = { ...ended, entry: withoutOutput(draft) };
        const write = lateSettling(this.#parts, unread, { since: began + durationMs });
        late.keep({ workspaceId, intent, write });
        // The caller MUST NOT assume that nothing happened and repeat it.
        const detail =
          "The call was made, but its outcome cannot be recorded. Do not repeat it without checking its effect.";
        throw new Problem("ledger_unavailable", detail, { cause });
      }
      if (code === "agent_stopped") throw interrupted(signal.reason, agent);
      return answer;
    } finally {
      if (budgetWait && !isOwed) budgets.release(callId);
      end();
    }
  }

  /** @param made the call as checked before it waits for its budget */
  #paid(
    { caller }: Call,
    made: {
      readonly tool: CatalogueTool;
      readonly agent: Agent | null;
      readonly owner: string;
      readonly price: number;
      readonly signal: AbortSignal;
    },
  ): PaidCall {
    const { agents, budgets, running } = this.#parts;
    const { tool, agent: before, owner, price, signal } = made;
    const { workspaceId } = caller;
    return {
      budgets,
      signal,
      detail: () => ({ price }),
      claim: async (tx) => {
        // Check everything again: the call may have waited.
        if (running.isDraining) throw draining();
        const agent = before && ((await agents.byId(workspaceId, before.id, tx)) ?? null);
        if (before && !agent) throw agentRemoved();
        requireAllowed(this.#parts, caller, tool, agent);
        return { spender: { workspaceId, agent }, owner, expected: () => price };
      },
    };
  }
}

/** @param signal the call's signal, which may have aborted it */
function outcomeOf(
  invocation: Invocation,
  { reason }: AbortSignal,
): { readonly answer: ToolAnswer; readonly outcome: EntryDraft["outcome"]; readonly code?: string } {
  if (invocation.status !== "aborted") return { ...invocation, outcome: invocation.status };
  if (!(reason instanceof CallInterruption)) {
    return { answer: failedAnswer("The call was cancelled."), outcome: "cancelled" };
  }
  return { answer: failedAnswer("The call was ended."), outcome: "cancelled", code: reason.code };
}

/** Answers a call that ended while it waited for a budget: nothing was sent. @throws Problem if Gatehouse ended it */
async function notBegun(
  call: Call,
  input: string,
  { reason }: AbortSignal,
  agent: Agent | null,
): Promise<ToolAnswer> {
  if (!(reason instanceof CallInterruption)) {
    return deny(call, input, "cancelled", "The call was cancelled before it was made.");
  }
  throw interrupted(reason, agent);
}

/** As with a task's calls, nobody knows what an interrupted call did. */
function countedOutcome(outcome: EntryDraft["outcome"], isSent: boolean): string {
  if (outcome !== "cancelled") return outcome;
  return isSent ? "unknown" : "denied";
}

import {
  type AfterModelCall,
  type AfterToolCall,
  AgentDenied,
  type BeforeModelCall,
  type BeforeToolCall,
  type Deny,
  type Hooks,
} from "../agents/index.ts";
import { cost } from "../base/credits.ts";
import { Problem } from "../base/errors.ts";
import { redact } from "../base/log.ts";
import { isToolName } from "../connectors/registry.ts";
import type { Reserve } from "../gate/budget.ts";
import { recordUsage, UNKNOWN_TOOL } from "../gate/usage/record.ts";
import type { Draft } from "../ledger/entry.ts";
import type { Tx } from "../store/db.ts";
import { askPeople } from "./approvals/ask.ts";
import { verdictOf } from "./approvals/present.ts";
import type { Approval, ApprovalWithTexts } from "./approvals/rows.ts";
import { chargeTask, closeModelCall, openModelCall } from "./charges.ts";
import { expectedCost } from "./expected-cost.ts";
import { TOKEN_ENDED } from "./interruption.ts";
import type { OwedCharge } from "./lost.ts";
import type { TaskParts } from "./parts.ts";
import { saveAnswer } from "./progress.ts";
import { finishToolCall, insertToolCall } from "./store.ts";
import type { Task } from "./task.ts";

const TOOL_NAME_LIMIT = 128;

/** What the hooks need of the run that they belong to. */
export interface Evidence {
  readonly task: Task;
  /**
   * Stands before each call of a model or a tool, within the transaction of its intent: marks the task as running, and reads the agent
   * anew, so that a change of it comes before the intent and holds, or comes after it.
   * @throws AgentDenied `agent_stopped`, `invalid_token`
   */
  enter(tx: Tx): Promise<{
    readonly id: number;
    readonly name: string;
    readonly creditsPerDay: number | null;
    readonly instructions: string | null;
    readonly approvalsRequired: number;
  }>;
  /** Takes the policy as it is now, for the choice of the model that is tried next and of the tools that may be called. */
  refreshPolicy(): Promise<void>;
  /** Whether the policy, as last read, allows this model in the task's tier. */
  allows(model: string): boolean;
  /** Whether agent and connector, as last read, allow this tool. */
  allowsTool(tool: string): boolean;
  /** Whether a person has to approve a call of this tool. */
  needsApproval(tool: string): boolean;
  /**
   * The hash of what a call of this tool would reach (`definitionHash`); undefined where it has changed since the run took the
   * tool up, or is not there any more.
   */
  definitionOf(tool: string): string | undefined;
  /** What was asked of people for this task before the run, by the call's id. */
  readonly asked: ReadonlyMap<string, ApprovalWithTexts>;
  /** Saves the events so far and that a call waits for a person, which its readers are told once it is on disk. */
  announce(tx: Tx, call: BeforeToolCall): Promise<void>;
  /** Saves the events so far within the step's own transaction. */
  saveEvents(tx: Tx): Promise<void>;
  /** Takes what a model call cost that could not be written: the task's end settles it. */
  owe(charge: OwedCharge): void;
}

/** A tool call whose intent is on disk. */
interface ToolIntent {
  readonly seq: number;
  /** Micro-credits that the call costs once it is made. */
  readonly price: number;
}

/** What may be called has changed while the call waited for its budget: thrown out of its transaction, of which nothing lasts. */
class RightsChanged extends Error {
  override readonly name = "RightsChanged";
}

/**
 * How the gateway stands around each call of a run: nothing is sent before its intent is on disk, and the run does not go
 * on before the outcome is.
 */
export function evidenceHooks(parts: TaskParts, evidence: Evidence) {
  const { db, ledger, budgets, estimates, clock, watch } = parts;
  const { task } = evidence;
  const { workspaceId } = task;
  const payer = { workspaceId, agent: { id: task.agentId, name: task.agent } };
  const toolIntents = new Map<string, ToolIntent>();
  /** Null: refused before anything was sent. */
  let modelIntent: number | null = null;
  /** What is sent was measured, for a budget. */
  let isMeasured = false;

  const about = (draft: Pick<Draft, "phase" | "action" | "outcome"> & Partial<Draft>): Draft => ({
    channel: "system",
    actor: task.createdBy,
    agent: task.agent,
    tier: task.tier,
    task: task.id,
    ...draft,
  });

  /**
   * Begins a call once its budgets allow that. @throws AgentDenied `credits_exhausted`, `invalid_token`, which `denied` is the entry of
   */
  async function begin<Seq>(
    signal: AbortSignal,
    denied: (code: string) => Draft,
    work: (tx: Tx, reserve: Reserve) => Promise<Seq>,
  ): Promise<Seq> {
    try {
      return await budgets.admit(signal, (reserve) => db.tx((tx) => work(tx, reserve)));
    } catch (error) {
      throw await refused(error, denied);
    }
  }

  /** Records a call that was refused before anything was sent. @returns what to throw */
  async function refused(error: unknown, denied: (code: string) => Draft): Promise<unknown> {
    const isRefusal =
      error instanceof Problem || (error instanceof AgentDenied && error.code === TOKEN_ENDED);
    if (!isRefusal) return error;
    await ledger.record(workspaceId, denied(error.code));
    return error instanceof AgentDenied ? error : new AgentDenied(error.code, error.message);
  }

  async function beforeModelCall(call: BeforeModelCall): Promise<void> {
    const { model, step, attempt, signal } = call;
    const denied = (code: string): Draft =>
      about({ phase: "single", action: "model.call", outcome: "denied", code, model });
    modelIntent = await begin(signal, denied, async (tx, reserve): Promise<number | null> => {
      const agent = await evidence.enter(tx);
      if (!evidence.allows(model)) {
        // Forbidden since it was chosen. The door refuses it too, and the next one of the route is tried.
        await ledger.append(tx, workspaceId, denied("model_forbidden"));
        return null;
      }
      const reserved = await reserve(tx, {
        spender: { workspaceId, agent },
        owner: task.id,
        expected: () =>
          expectedCost(parts.door.price(model), estimates, model, () => {
            isMeasured = true;
            return call.sentBytes();
          }),
      });
      const seq = await ledger.append(
        tx,
        workspaceId,
        about({
          phase: "intent",
          action: "model.call",
          outcome: "allowed",
          model,
          detail: { attempt, step, ...(reserved === 0 ? {} : { reserved }) },
        }),
      );
      await openModelCall(tx, workspaceId, task.id, { seq, model, reserved });
      tx.onCommit(() => watch.taskChanged(workspaceId, task.id));
      return seq;
    });
  }

  async function afterModelCall(call: AfterModelCall): Promise<void> {
    const { status } = call;
    if (modelIntent !== null) await recordModelCall(modelIntent, call);
    modelIntent = null;
    isMeasured = false;
    if (status === "failed") await evidence.refreshPolicy();
  }

  async function recordModelCall(ref: number, call: AfterModelCall): Promise<void> {
    const { model, step, status, usage, text, toolCalls, durationMs, reason } = call;
    // The upstream's own words stay out of log and ledger: they may repeat its secrets.
    if (reason !== undefined) parts.log.warn("a model call failed", { task: task.id, model, reason });
    const { inputTokens, outputTokens } = usage;
    const credits = cost(parts.door.price(model), inputTokens, outputTokens);
    const charge = { credits, inputTokens, outputTokens, steps: status === "succeeded" ? 1 : 0 };
    watch.modelCall(model, status, durationMs, credits);
    learn(call);
    const work = async (tx: Tx): Promise<void> => {
      const detail = {
        duration_ms: Math.round(durationMs),
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        usage: usage.estimated ? "estimated" : "reported",
      };
      await ledger.append(
        tx,
        workspaceId,
        about({
          phase: "outcome",
          ref,
          action: "model.call",
          outcome: status,
          code: reason,
          model,
          credits,
          detail,
        }),
      );
      await closeModelCall(tx, workspaceId, task.id, charge);
      await budgets.charge(tx, payer, credits);
      tx.onCommit(() => {
        budgets.release(task.id);
        watch.taskChanged(workspaceId, task.id);
      });
      const { agentId } = task;
      const used = {
        kind: "model",
        name: model,
        outcome: status,
        credits,
        inputTokens,
        outputTokens,
      } as const;
      await recordUsage(tx, { workspaceId, agentId, ...used, at: clock.now(), durationMs });
      if (status === "succeeded") await saveAnswer(tx, task, step, { role: "assistant", text, toolCalls });
      await evidence.saveEvents(tx);
    };
    try {
      await db.tx(work);
    } catch (error) {
      // The answer is not used, as nobody can prove it; so it makes no step. It was paid for all the same: what is reserved
      // for it stays so until the task's end is written.
      evidence.owe({ ...charge, steps: 0, ref });
      throw error;
    }
  }

  /**
   * Puts a call before people. @param before the same call as it was presented earlier
   * @returns why nobody is asked. @throws AwaitingApproval
   */
  async function present(call: BeforeToolCall, before: Approval | undefined): Promise<Deny> {
    try {
      return await askPeople(parts, evidence, task, call, before);
    } catch (error) {
      throw await refused(error, (code) =>
        about({
          ...{ phase: "single", action: "tool.call", outcome: "denied", code, tool: call.tool },
          input: JSON.stringify(call.arguments),
        }),
      );
    }
  }

  /**
   * A part of an answer says nothing of its length, unless it is longer than what is expected already. Nothing is measured only to
   * learn from it: 100 kB took 0.7 ms on a busy core.
   */
  function learn({ model, status, usage, sentBytes }: AfterModelCall): void {
    const { inputTokens, outputTokens, estimated } = usage;
    if (status === "succeeded" || outputTokens > estimates.output(model)) {
      estimates.noteOutput(model, outputTokens);
    }
    if (estimated || !isMeasured) return;
    estimates.noteInput(model, { sentBytes: sentBytes(), inputTokens });
  }

  async function beforeToolCall(call: BeforeToolCall): Promise<Deny | undefined> {
    for (;;) {
      try {
        return await decideOnTool(call);
      } catch (error) {
        if (!(error instanceof RightsChanged)) throw error;
      }
    }
  }

  /** @throws RightsChanged where it has to be decided anew */
  async function decideOnTool(call: BeforeToolCall): Promise<Deny | undefined> {
    // What was changed while the model answered holds for what it asks now.
    await evidence.refreshPolicy();
    if (!evidence.allowsTool(call.tool)) return { deny: `${call.tool} may not be used any more.` };
    const asked = evidence.asked.get(call.id);
    const verdict = asked === undefined ? null : verdictOf(asked, call, evidence.definitionOf(call.tool));
    if (verdict?.kind === "denied") return verdict.deny;
    if (verdict?.kind === "changed") return present(call, asked);
    if (verdict === null && evidence.needsApproval(call.tool)) return present(call, asked);
    const intent = await intendTool(call, verdict === null ? undefined : asked);
    toolIntents.set(call.id, intent);
    return undefined;
  }

  /** @param approval by which a person has approved the call. @throws RightsChanged */
  async function intendTool(call: BeforeToolCall, approval: Approval | undefined): Promise<ToolIntent> {
    const price = budgets.toolPrice(call.tool);
    const input = JSON.stringify(call.arguments);
    const draft = about({ phase: "intent", action: "tool.call", outcome: "allowed", tool: call.tool, input });
    const denied = (code: string): Draft => ({ ...draft, phase: "single", outcome: "denied", code });
    return begin(call.signal, denied, async (tx, reserve) => {
      const agent = await evidence.enter(tx);
      // It may have waited for its budget since it was decided on.
      const isAsked = approval === undefined && evidence.needsApproval(call.tool);
      const isOther = approval !== undefined && evidence.definitionOf(call.tool) !== approval.definitionHash;
      if (isAsked || isOther || !evidence.allowsTool(call.tool)) throw new RightsChanged();
      // What costs nothing needs no budget, a spent one neither.
      if (price > 0) {
        const spender = { workspaceId, agent };
        await reserve(tx, { spender, owner: task.id, expected: () => price });
      }
      const facts = {
        ...(approval === undefined ? {} : { approval_seq: approval.decisionSeq ?? undefined }),
        ...(price === 0 ? {} : { price }),
      };
      const detail = Object.keys(facts).length === 0 ? undefined : facts;
      const seq = await ledger.append(tx, workspaceId, { ...draft, detail });
      await insertToolCall(tx, workspaceId, task.id, {
        ...call,
        intentSeq: seq,
        startedAt: clock.now(),
        status: "unknown",
        price,
      });
      await evidence.saveEvents(tx);
      return { seq, price };
    });
  }

  /** Refused by the framework before anything was sent: one entry says both, in the word that the task shows. */
  async function recordRefused(tx: Tx, call: AfterToolCall, tool: string, output: string): Promise<number> {
    const seq = await ledger.append(
      tx,
      workspaceId,
      about({
        phase: "single",
        action: "tool.call",
        outcome: "denied",
        code: call.code,
        // What a model makes up stays in the ledger for ever: only what can be a tool's name.
        tool: isToolName(call.tool) ? tool : undefined,
        input: JSON.stringify(call.arguments),
        output,
      }),
    );
    const { id, status } = call;
    await insertToolCall(tx, workspaceId, task.id, {
      id,
      tool,
      intentSeq: seq,
      startedAt: clock.now(),
      status,
      price: 0,
    });
    return seq;
  }

  async function recordOutcome(
    tx: Tx,
    call: AfterToolCall,
    { seq: ref, price }: ToolIntent,
    tool: string,
    output: string,
  ): Promise<number> {
    const { status } = call;
    // What came of it changes nothing about its price, as long as it was sent.
    const micros = call.dispatched ? price : 0;
    const outcome = status === "succeeded" || status === "denied" ? status : "failed";
    const code = call.code ?? (status === "unknown" ? "unknown" : undefined);
    const credits = micros === 0 ? undefined : micros;
    const draft = about({ phase: "outcome", ref, action: "tool.call", outcome, code, tool, output, credits });
    const outcomeSeq = await ledger.append(tx, workspaceId, draft);
    await chargeTask(tx, workspaceId, task.id, micros);
    await budgets.charge(tx, payer, micros);
    tx.onCommit(() => {
      budgets.release(task.id);
      if (micros > 0) watch.taskChanged(workspaceId, task.id);
    });
    return outcomeSeq;
  }

  async function afterToolCall(call: AfterToolCall): Promise<void> {
    watch.toolCall(call.status);
    const output = JSON.stringify(call.output);
    const intent = toolIntents.get(call.id);
    toolIntents.delete(call.id);
    // Before it is cut: a secret that the cut parts would be known by nothing.
    const tool = redact(call.tool).slice(0, TOOL_NAME_LIMIT);
    const isKnown = intent !== undefined || parts.tools.catalogue.find(workspaceId, call.tool) !== undefined;
    await db.tx(async (tx) => {
      const outcomeSeq =
        intent === undefined
          ? await recordRefused(tx, call, tool, output)
          : await recordOutcome(tx, call, intent, tool, output);
      const durationMs = Math.round(call.durationMs);
      await finishToolCall(tx, workspaceId, task.id, call.id, {
        status: call.status,
        outcomeSeq,
        durationMs,
      });
      await recordUsage(tx, {
        workspaceId,
        agentId: task.agentId,
        kind: "tool",
        name: isKnown ? call.tool : UNKNOWN_TOOL,
        outcome: call.status,
        at: clock.now(),
        durationMs: call.durationMs,
        credits: call.dispatched ? (intent?.price ?? 0) : 0,
      });
      await evidence.saveEvents(tx);
    });
  }

  return { beforeModelCall, afterModelCall, beforeToolCall, afterToolCall } satisfies Hooks;
}

import type { AfterToolCall, BeforeToolCall, Deny } from "../../agents/index.ts";
import { redact } from "../../base/log.ts";
import { isToolName } from "../../connectors/registry.ts";
import { RightsChanged } from "../../gate/rights-changed.ts";
import { settleCall } from "../../gate/settle.ts";
import { recordUsage } from "../../gate/usage/counts.ts";
import { UNKNOWN_TOOL } from "../../gate/usage/record.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Tx } from "../../store/db.ts";
import { verdictOf } from "../approvals/present.ts";
import type { ProvenApproval } from "../approvals/proven.ts";
import type { Approval } from "../approvals/rows.ts";
import type { TaskParts } from "../parts.ts";
import { chargeTask } from "../rows/charges.ts";
import { finishToolCall, insertToolCall } from "../rows/tool-calls.ts";
import { type AskPeopleParts, askPeople } from "./ask-people.ts";
import type { CallEvidence } from "./call-evidence.ts";
import type { RunJournal } from "./journal.ts";
import type { RunRights } from "./rights.ts";

export interface ToolEvidenceParts
  extends Pick<TaskParts, "budgets" | "clock" | "db" | "ledger" | "tools" | "signals">,
    Omit<AskPeopleParts, "journal" | "task"> {
  readonly evidence: CallEvidence;
  readonly rights: RunRights;
  readonly journal: Pick<RunJournal, "announce" | "save">;
  /** Approvals requested by this task before the run, by call id. */
  readonly asked: ReadonlyMap<string, ProvenApproval>;
}

/** A tool call whose intent is on disk. */
interface ToolIntent {
  readonly seq: number;
  /** Micro-credits that the call costs once it is made. */
  readonly price: number;
}

const TOOL_NAME_LIMIT = 128;

/**
 * Decides on each tool call, requests approval if needed, and writes an intent before the call and an outcome after
 * it.
 */
export class ToolEvidence {
  readonly #parts: ToolEvidenceParts;
  readonly #intents = new Map<string, ToolIntent>();

  constructor(parts: ToolEvidenceParts) {
    this.#parts = parts;
  }

  async before(call: BeforeToolCall): Promise<Deny | undefined> {
    for (;;) {
      try {
        return await this.#decide(call);
      } catch (error) {
        if (!(error instanceof RightsChanged)) throw error;
      }
    }
  }

  /** @throws RightsChanged if the call must be decided again */
  async #decide(call: BeforeToolCall): Promise<Deny | undefined> {
    const { rights, asked } = this.#parts;
    // Changes made while the model answered apply to this call.
    await rights.refresh();
    if (!rights.allowsTool(call.tool)) return { deny: `The tool ${call.tool} may no longer be used.` };
    const approval = asked.get(call.id);
    const verdict = approval === undefined ? null : verdictOf(approval, call, rights.definitionOf(call.tool));
    if (verdict?.kind === "denied") return verdict.deny;
    if (verdict?.kind === "changed") return this.#ask(call, approval);
    if (verdict === null && rights.needsApproval(call.tool)) return this.#ask(call, approval);
    this.#intents.set(call.id, await this.#intend(call, verdict === null ? undefined : approval));
    return undefined;
  }

  /**
   * Presents a call for approval.
   * @param before the same call as presented earlier
   * @returns the reason if the call cannot be presented
   * @throws AwaitingApproval if it was
   */
  #ask(call: BeforeToolCall, before: Approval | undefined): Promise<Deny> {
    const { evidence } = this.#parts;
    const input = JSON.stringify(call.arguments);
    const fields = { phase: "single", action: "tool.call", outcome: "denied", tool: call.tool } as const;
    return evidence.recordRefusal(
      (code) => evidence.draft({ ...fields, code, input }),
      () => askPeople({ ...this.#parts, task: evidence.task }, call, before),
    );
  }

  /**
   * @param approval the approval by which the call is made, if it needed one
   * @throws RightsChanged if the call must be decided again
   */
  async #intend(call: BeforeToolCall, approval: Approval | undefined): Promise<ToolIntent> {
    const { evidence, guard, rights, budgets, ledger, clock, journal } = this.#parts;
    const { workspaceId, id } = evidence.task;
    const { tool } = call;
    const price = budgets.toolPrice(tool);
    const input = JSON.stringify(call.arguments);
    const draft = evidence.draft({ phase: "intent", action: "tool.call", outcome: "allowed", tool, input });
    const denied = (code: string): EntryDraft => ({ ...draft, phase: "single", outcome: "denied", code });
    return evidence.begin(call.signal, denied, async (tx, reserve) => {
      const agent = await guard.enter(tx);
      // The call may have waited for a budget since it was decided.
      const needsPerson = approval === undefined && rights.needsApproval(tool);
      const isOther = approval !== undefined && rights.definitionOf(tool) !== approval.definitionHash;
      if (needsPerson || isOther || !rights.allowsTool(tool)) throw new RightsChanged();
      // A free call needs no budget, and is made even if the budget is exhausted.
      if (price > 0) {
        await reserve(tx, { spender: { workspaceId, agent }, owner: id, expected: () => price });
      }
      const detail = intentDetail(call.id, approval, price);
      const seq = await ledger.append(tx, workspaceId, { ...draft, detail });
      const row = { ...call, intentSeq: seq, startedAt: clock.now(), status: "unknown", price } as const;
      await insertToolCall(tx, workspaceId, id, row);
      await journal.save(tx);
      return { seq, price };
    });
  }

  async after(call: AfterToolCall): Promise<void> {
    const { evidence, db, signals, journal } = this.#parts;
    const { workspaceId, id } = evidence.task;
    signals.toolCalled.emit({ status: call.status });
    const output = JSON.stringify(call.output);
    const intent = this.#intents.get(call.id);
    this.#intents.delete(call.id);
    // Redacted before it is truncated, because part of a secret would not be recognised.
    const tool = redact(call.tool).slice(0, TOOL_NAME_LIMIT);
    await db.tx(workspaceId, async (tx) => {
      const outcomeSeq = intent
        ? await this.#writeOutcome(tx, call, intent, tool, output)
        : await this.#writeRefusal(tx, call, tool, output);
      const { status } = call;
      const durationMs = Math.round(call.durationMs);
      finishToolCall(tx, workspaceId, id, call.id, { status, outcomeSeq, durationMs });
      await journal.save(tx);
    });
  }

  /**
   * Records a call that the framework refused before anything was sent: a single entry, with the code that the task
   * shows and the call's id, so that its row can be compared with it.
   */
  async #writeRefusal(tx: Tx, call: AfterToolCall, tool: string, output: string): Promise<number> {
    const { evidence, ledger, clock, tools } = this.#parts;
    const { workspaceId, agentId, id: task } = evidence.task;
    const { id, status, code, durationMs } = call;
    const draft = evidence.draft({
      ...{ phase: "single", action: "tool.call", outcome: "denied", code },
      // Entries are permanent, and a model may invent any name. Only a valid tool name is recorded.
      tool: isToolName(call.tool) ? tool : undefined,
      input: JSON.stringify(call.arguments),
      output,
      detail: { call: id },
    });
    const seq = await ledger.append(tx, workspaceId, draft);
    const row = { id, tool, intentSeq: seq, startedAt: clock.now(), status, price: 0 };
    await insertToolCall(tx, workspaceId, task, row);
    const isKnown = tools.catalogue.find(workspaceId, call.tool) !== undefined;
    recordUsage(tx, {
      ...{ workspaceId, agentId, kind: "tool", name: isKnown ? call.tool : UNKNOWN_TOOL },
      ...{ outcome: status, at: clock.now(), durationMs, credits: 0 },
    });
    return seq;
  }

  async #writeOutcome(
    tx: Tx,
    call: AfterToolCall,
    { seq: ref, price }: ToolIntent,
    tool: string,
    output: string,
  ): Promise<number> {
    const { evidence, budgets, signals } = this.#parts;
    const { task, payer } = evidence;
    const { workspaceId, id } = task;
    const { status, dispatched, durationMs } = call;
    // A call costs its price as soon as it is sent, whatever its result.
    const micros = dispatched ? price : 0;
    const outcome = status === "succeeded" || status === "denied" ? status : "failed";
    const code = call.code ?? (status === "unknown" ? "unknown" : undefined);
    const credits = micros === 0 ? undefined : micros;
    const fields = { phase: "outcome", ref, action: "tool.call", outcome, code } as const;
    const outcomeSeq = await settleCall(tx, this.#parts, {
      payer,
      entry: evidence.draft({ ...fields, tool, output, credits }),
      credits: micros,
      owner: id,
      usage: { kind: "tool", name: call.tool, outcome: status, durationMs },
    });
    chargeTask(tx, workspaceId, id, micros);
    tx.onCommit(() => {
      budgets.release(id);
      if (micros > 0) signals.changed.emit({ workspaceId, task: id });
    });
    return outcomeSeq;
  }
}

/** Names the call, the approval by which it is made, and its price. */
function intentDetail(call: string, approval: Approval | undefined, price: number): EntryDraft["detail"] {
  const { decisionSeq = null, argumentsHash } = approval ?? {};
  const approved = decisionSeq === null ? {} : { approval_seq: decisionSeq, arguments_hash: argumentsHash };
  return { call, ...approved, ...(price === 0 ? {} : { price }) };
}

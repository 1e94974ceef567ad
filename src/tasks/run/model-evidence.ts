import type { AfterModelCall, BeforeModelCall } from "../../agents/index.ts";
import { cost } from "../../base/call-cost.ts";
import { settleCall } from "../../gate/settle.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import { expectedCost } from "../../models/expected-cost.ts";
import { tokenParts } from "../../models/token-parts.ts";
import type { Tx } from "../../store/db.ts";
import type { UnwrittenOutcome } from "../ending/finish.ts";
import type { OwedCharge } from "../ending/lost-calls.ts";
import type { TaskParts } from "../parts.ts";
import { closeModelCall, type ModelCallCharge } from "../rows/charges.ts";
import type { CallEvidence } from "./call-evidence.ts";
import type { CallGuard } from "./call-guard.ts";
import type { RunJournal } from "./journal.ts";
import { saveAnswer } from "./progress.ts";
import type { RunRights } from "./rights.ts";

export interface ModelEvidenceParts
  extends Pick<
    TaskParts,
    "budgets" | "clock" | "db" | "modelGateway" | "estimates" | "ledger" | "log" | "signals"
  > {
  readonly evidence: CallEvidence;
  readonly guard: Pick<CallGuard, "admit" | "markRunning" | "open">;
  readonly rights: Pick<RunRights, "allowsModel" | "refresh">;
  readonly journal: Pick<RunJournal, "save">;
}

/** A call that has ended, and whose outcome is to be written. */
interface EndedModelCall {
  /** Seq of the call's intent. */
  readonly ref: number;
  readonly call: AfterModelCall;
  readonly charge: ModelCallCharge;
}

/** A model call whose intent is on disk. */
interface ModelIntent {
  readonly seq: number;
  /** Whether the request was measured, because the model has a price. */
  readonly isMeasured: boolean;
}

/**
 * Records model calls. Before each call, waits for a request slot, writes an intent and reserves the expected cost.
 * After it, writes the outcome, charges it and stores the answer in one transaction before the run continues. The
 * outcome of the call that ends the run is left to the transaction of the task's end, so that both need one sync.
 */
export class ModelEvidence implements UnwrittenOutcome {
  readonly #parts: ModelEvidenceParts;
  /** Whether an answer without tool calls ends the run. */
  readonly #anyTextEnds: boolean;
  /** Null if the call was refused before anything was sent. */
  #intent: ModelIntent | null = null;
  #owed: OwedCharge | null = null;
  #unwritten: EndedModelCall | null = null;
  /** Releases the call's request slot. */
  #leave: () => void = () => {};

  /** @param anyTextEnds whether an answer without tool calls ends the run, because its text is not checked */
  constructor(parts: ModelEvidenceParts, anyTextEnds: boolean) {
    this.#parts = parts;
    this.#anyTextEnds = anyTextEnds;
  }

  get owed(): OwedCharge | null {
    return this.#owed;
  }

  get isUnwritten(): boolean {
    return this.#unwritten !== null;
  }

  async writeWithEnd(tx: Tx): Promise<void> {
    const ended = this.#unwritten;
    if (!ended) return;
    await this.#writeOutcome(tx, ended);
    tx.onCommit(() => {
      this.#unwritten = null;
    });
  }

  async writeAlone(): Promise<void> {
    const ended = this.#unwritten;
    this.#unwritten = null;
    if (ended) await this.#write(ended);
  }

  async before(call: BeforeModelCall): Promise<void> {
    const { modelGateway, evidence } = this.#parts;
    this.#leave = await modelGateway.enter(call.model, evidence.task.workspaceId, call.signal);
    try {
      await this.#begin(call);
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  async #begin(call: BeforeModelCall): Promise<void> {
    const { evidence, guard, rights, ledger, modelGateway, estimates, signals } = this.#parts;
    const { model, step, attempt, signal } = call;
    const { workspaceId, id } = evidence.task;
    const denied = (code: string): EntryDraft =>
      evidence.draft({ phase: "single", action: "model.call", outcome: "denied", code, model });
    this.#intent = await evidence.begin(signal, denied, async (tx, reserve) => {
      const agent = await guard.admit(tx);
      if (!rights.allowsModel(model)) {
        // The model has been forbidden since it was chosen. The call itself would refuse it too, and the next model
        // of the route is tried.
        await guard.markRunning(tx);
        await ledger.append(tx, workspaceId, denied("model_forbidden"));
        return null;
      }
      let isMeasured = false;
      const sentBytes = (): number => {
        isMeasured = true;
        return call.sentBytes();
      };
      const price = modelGateway.price(model);
      const expected = () => expectedCost(price, estimates.of(workspaceId), model, sentBytes);
      // Without a budget nothing is reserved, but a lost call still has a price.
      const reserved =
        (await reserve(tx, { spender: { workspaceId, agent }, owner: id, expected })) || expected();
      const detail = { attempt, step, ...(reserved === 0 ? {} : { reserved }) };
      const draft = { phase: "intent", action: "model.call", outcome: "allowed", model, detail } as const;
      const seq = await ledger.append(tx, workspaceId, evidence.draft(draft));
      await guard.open(tx, { seq, model, reserved });
      tx.onCommit(() => signals.changed.emit({ workspaceId, task: id }));
      return { seq, isMeasured };
    });
  }

  async after(call: AfterModelCall): Promise<void> {
    this.#leave();
    const intent = this.#intent;
    this.#intent = null;
    if (intent) await this.#record(intent, call);
    if (call.status === "failed") await this.#parts.rights.refresh();
  }

  async #record({ seq: ref, isMeasured }: ModelIntent, call: AfterModelCall): Promise<void> {
    const { evidence, modelGateway, log, signals } = this.#parts;
    const { model, status, usage, durationMs, reason } = call;
    // Error text from upstream is kept out of the log and the ledger because it may contain secrets.
    if (reason !== undefined) log.warn("a model call failed", { task: evidence.task.id, model, reason });
    const { inputTokens, outputTokens, disbelieved } = usage;
    if (disbelieved !== undefined) {
      log.warn("a model reported implausible usage", { task: evidence.task.id, model, disbelieved });
    }
    const credits = cost(modelGateway.price(model), usage);
    const charge = { credits, inputTokens, outputTokens, steps: status === "succeeded" ? 1 : 0 };
    signals.modelCalled.emit({ model, status, durationMs, credits, inputTokens, outputTokens });
    this.#learn(call, isMeasured);
    const ended = { ref, call, charge };
    if (this.#anyTextEnds && status === "succeeded" && call.toolCalls.length === 0) this.#unwritten = ended;
    else await this.#write(ended);
  }

  /** Writes an outcome in a transaction of its own. */
  async #write(ended: EndedModelCall): Promise<void> {
    const { db, evidence, journal } = this.#parts;
    const { task } = evidence;
    const { step, status, text, toolCalls } = ended.call;
    try {
      await db.tx(task.workspaceId, async (tx) => {
        await this.#writeOutcome(tx, ended);
        if (status === "succeeded") saveAnswer(tx, task, step, { role: "assistant", text, toolCalls });
        await journal.save(tx);
      });
    } catch (error) {
      // The answer cannot be proven, so it is not used and does not count as a step. It has still been paid for, so
      // its reservation remains until the task's end is written.
      this.#owed = { ...ended.charge, steps: 0, ref: ended.ref };
      throw error;
    }
  }

  async #writeOutcome(tx: Tx, { ref, call, charge }: EndedModelCall): Promise<void> {
    const { evidence, budgets, signals } = this.#parts;
    const { task, payer } = evidence;
    const { workspaceId, id } = task;
    const { model, status, usage, durationMs, reason } = call;
    const { credits, inputTokens, outputTokens } = charge;
    const detail = {
      duration_ms: Math.round(durationMs),
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      ...tokenParts(usage),
      usage: usage.estimated ? "estimated" : "reported",
      ...(usage.disbelieved === undefined ? {} : { disbelieved: usage.disbelieved }),
    };
    const fields = { phase: "outcome", ref, action: "model.call", outcome: status, code: reason } as const;
    await settleCall(tx, this.#parts, {
      payer,
      entry: evidence.draft({ ...fields, model, credits, detail }),
      credits,
      owner: id,
      usage: { kind: "model", name: model, outcome: status, inputTokens, outputTokens, durationMs },
    });
    closeModelCall(tx, workspaceId, id, charge);
    tx.onCommit(() => {
      budgets.release(id);
      signals.changed.emit({ workspaceId, task: id });
    });
  }

  /**
   * An incomplete answer gives no information about the usual length, unless it is already longer than expected.
   * Requests are never measured only for this: 100 kB took 0.7 ms on a busy core.
   */
  #learn({ model, status, usage, sentBytes }: AfterModelCall, isMeasured: boolean): void {
    const estimates = this.#parts.estimates.of(this.#parts.evidence.task.workspaceId);
    const { inputTokens, outputTokens, estimated } = usage;
    if (status === "succeeded" || outputTokens > estimates.output(model)) {
      estimates.noteOutput(model, outputTokens);
    }
    if (estimated || !isMeasured) return;
    estimates.noteInput(model, { sentBytes: sentBytes(), inputTokens });
  }
}

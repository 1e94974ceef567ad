import type { Agent } from "../../../src/access/agents.ts";
import type { Clock } from "../../../src/base/clock.ts";
import type { Ids } from "../../../src/base/ids.ts";
import type { Budgets } from "../../../src/gate/budget.ts";
import { settleCall } from "../../../src/gate/settle.ts";
import type { EntryDraft } from "../../../src/ledger/entry.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { Tx } from "../../../src/store/db.ts";
import { localClaims } from "../../../src/tasks/claims/claims.ts";
import { finishTask } from "../../../src/tasks/ending/finish.ts";
import { encodeFrame } from "../../../src/tasks/events/frames.ts";
import { closeModelCall } from "../../../src/tasks/rows/charges.ts";
import { findTask, insertTask, markRunning } from "../../../src/tasks/rows/tasks.ts";
import { TaskSignals } from "../../../src/tasks/signals.ts";
import { chunks, SHORT_CHUNKS } from "../servers/script.ts";
import { PROMPT, TIER } from "../setup.ts";

export interface TaskWriterParts {
  readonly ledger: Ledger;
  readonly budgets: Budgets;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** The caller of everything in a filled history. */
export const ACTOR = "token:tok_01k9zq4v7x8h2m5n3p6r0s1t2w";
const MODEL = "fake/short";
const OUTPUT = chunks(SHORT_CHUNKS).join("");
const DURATION_MS = 800;
/** Event ids that a started task may use. */
const EVENT_CEILING = 4_098;
const NO_READERS = { find: () => undefined, relay: null };

/** Writes tasks that have ended: the rows, entries, texts and events of a run without tools, by the program's code. */
export class TaskWriter {
  readonly #parts: TaskWriterParts;
  readonly #signals = new TaskSignals();

  constructor(parts: TaskWriterParts) {
    this.#parts = parts;
  }

  /** @returns the task's id */
  async write(tx: Tx, workspaceId: number, agent: Agent): Promise<string> {
    const { ledger, clock, ids } = this.#parts;
    const id = ids("task");
    const now = clock.now();
    const about = { actor: ACTOR, agent: agent.name, tier: TIER.short, task: id };
    const dispatch: EntryDraft = {
      ...about,
      ...{ phase: "intent", action: "task.dispatch", outcome: "allowed", channel: "rest" },
      requestId: ids("req"),
      input: PROMPT,
    };
    const dispatchSeq = await ledger.append(tx, workspaceId, dispatch);
    const row = {
      ...{ id, agentId: agent.id, agent: agent.name, tier: TIER.short, tools: [] },
      ...{ metadata: { case: "2026-0117", team: "support" }, inputForm: null, continues: null },
      ...{ createdBy: ACTOR, createdAt: now },
    };
    insertTask(tx, workspaceId, row, dispatchSeq);
    await this.#callModel(tx, workspaceId, agent, about);
    const task = await findTask(tx, workspaceId, id);
    if (!task) throw new Error(`the task ${id} was not written`);
    const frames = [
      encodeFrame(2, "task.started", { model: MODEL, tier: TIER.short }),
      encodeFrame(3, "output.delta", { text: OUTPUT }),
    ];
    await finishTask(
      { ...this.#parts, claims: localClaims, signals: this.#signals, hub: NO_READERS },
      tx,
      task,
      { status: "succeeded", error: null, output: OUTPUT, at: now + DURATION_MS, isLate: false },
      { unsaved: { firstId: 2, frames }, outcome: null, isBare: false },
    );
    return id;
  }

  async #callModel(
    tx: Tx,
    workspaceId: number,
    agent: Agent,
    about: Pick<EntryDraft, "actor" | "agent" | "tier"> & { readonly task: string },
  ): Promise<void> {
    const { ledger } = this.#parts;
    const call = { ...about, action: "model.call", channel: "system", model: MODEL } as const;
    const seq = await ledger.append(tx, workspaceId, {
      ...call,
      ...{ phase: "intent", outcome: "allowed", detail: { attempt: 1, step: 1 } },
    });
    const intent = { seq, model: MODEL, reserved: 0 };
    const start = { at: this.#parts.clock.now(), eventCeiling: EVENT_CEILING, call: intent };
    await markRunning(tx, workspaceId, about.task, start);
    const charge = { credits: 1_000, inputTokens: 17, outputTokens: 8, steps: 1 };
    const { credits, inputTokens, outputTokens } = charge;
    const detail = { duration_ms: DURATION_MS, input_tokens: inputTokens, output_tokens: outputTokens };
    await settleCall(tx, this.#parts, {
      payer: { workspaceId, agent },
      entry: {
        ...call,
        ...{
          phase: "outcome",
          ref: seq,
          outcome: "succeeded",
          credits,
          detail: { ...detail, usage: "reported" },
        },
      },
      credits,
      usage: {
        ...{ kind: "model", name: MODEL, outcome: "succeeded", inputTokens, outputTokens },
        durationMs: DURATION_MS,
      },
    });
    closeModelCall(tx, workspaceId, about.task, charge);
  }
}

import type { AgentEvent, BeforeToolCall, ToolCall } from "../../agents/index.ts";
import { StoreUnavailable, type Tx } from "../../store/db.ts";
import type { Approval } from "../approvals/rows.ts";
import { encodeFrame } from "../events/frames.ts";
import type { EventLog } from "../events/log.ts";
import { saveEvents } from "../events/store.ts";
import type { TaskParts } from "../parts.ts";
import { raiseEventCeiling } from "../rows/tasks.ts";
import type { Task } from "../task.ts";
import { WholeCharacters } from "./characters.ts";

/** The id of a task's first event after `task.created`, in the process that accepted it. */
const FIRST_RUN_EVENT = 2;
/** Event ids that a started task may use before it has to reserve more in the store. */
const CEILING_STEP = 4096;
/**
 * The maximum number of frames that this turn's pending text may become after the ids were last compared with the
 * ceiling.
 */
const UNNUMBERED = 2;
/**
 * Size in bytes of events that are kept in memory until the end of their step. More are stored during the step, so
 * that long answers of many tasks do not accumulate in memory. If the process dies before the step ends,
 * `output.reset` retracts them.
 */
const UNSAVED_BYTES = 32 * 1024;

/** Events that a run publishes along the way. Its end is published with the task's end. */
export type RunEvent = Exclude<AgentEvent, { type: "agent.finished" | "agent.failed" }>;

type JournalTask = Pick<Task, "workspaceId" | "id" | "agent" | "tier">;

/**
 * Publishes a run's events to readers and stores them, usually at the end of each step in the step's own transaction.
 */
export class RunJournal {
  readonly #parts: Pick<TaskParts, "db" | "hooks" | "hub" | "signals">;
  readonly #task: JournalTask;
  readonly #log: EventLog;
  readonly #characters = new WholeCharacters();
  /** Approvals requested by this task before the run, by call id. */
  readonly #asked: ReadonlyMap<string, Approval>;
  #ceiling: number;
  #saveAt = UNSAVED_BYTES;

  constructor(
    parts: Pick<TaskParts, "db" | "hooks" | "hub" | "signals">,
    task: JournalTask,
    log: EventLog,
    asked: ReadonlyMap<string, Approval>,
  ) {
    this.#parts = parts;
    this.#task = task;
    this.#log = log;
    this.#asked = asked;
    this.#ceiling = log.nextId + CEILING_STEP;
  }

  /** The highest event id that the task may use. It is stored when the task is marked as running. */
  get ceiling(): number {
    return this.#ceiling;
  }

  /**
   * MUST be called before anything is published ahead of the first call's intent, which stores the ceiling: the next
   * process must not reuse these ids. Until then, a task that this process accepted publishes at most one event, for
   * which recovery leaves room.
   */
  async prepare(publishesFirst: boolean): Promise<void> {
    if (publishesFirst || this.#log.nextId > FIRST_RUN_EVENT) await this.#raiseCeiling();
  }

  started(model: string): void {
    this.#log.publish("task.started", { model, tier: this.#task.tier });
  }

  reset(): void {
    this.#log.publish("output.reset", {});
  }

  text(text: string): void {
    if (text !== "") this.#log.publishText(text);
  }

  publish(event: RunEvent): void {
    switch (event.type) {
      case "output.delta":
        this.text(this.#characters.take(event.text));
        return;
      case "output.reset":
        this.reset();
        return;
      case "model.fallback":
        this.#log.publish("model.fallback", { from: event.from, to: event.to, reason: event.reason });
        return;
      case "tool.call":
        // Readers already saw the call when it was presented. They see it again only if a person has changed its
        // arguments.
        if (isAsAsked(this.#asked.get(event.id))) return;
        this.#log.publish("tool.call", { id: event.id, tool: event.tool, arguments: event.arguments });
        return;
      case "tool.result":
        this.toolResult(event, event.status, event.durationMs);
        return;
      case "step.started":
      case "step.finished":
      case "model.started":
        return;
    }
  }

  toolResult({ id, tool }: Pick<ToolCall, "id" | "tool">, status: string, durationMs: number): void {
    this.#log.publish("tool.result", { id, tool, status, duration_ms: Math.round(durationMs) });
  }

  /** Publishes the half character that may be left when an answer ends. */
  endText(isThrownAway: boolean): void {
    const rest = this.#characters.rest();
    if (!isThrownAway) this.text(rest);
  }

  /** Called after each event. Raises the ceiling and stores accumulated events if necessary. */
  async keepUp(): Promise<void> {
    if (this.#log.nextId + UNNUMBERED >= this.#ceiling) await this.#raiseCeiling();
    if (this.#log.unsavedBytes >= this.#saveAt) await this.#saveEarly();
  }

  /** Stores the events so far in a step's own transaction. */
  async save(tx: Tx): Promise<void> {
    const log = this.#log;
    log.flush();
    const from = log.savedUpTo;
    const to = log.nextId - 1;
    if (to === from) return;
    saveEvents(tx, this.#task.workspaceId, this.#task.id, from + 1, log.after(from));
    tx.onCommit(() => log.saved(to));
  }

  /**
   * Stores the events published so far, and records that a call waits for a person. Readers see the call after the
   * commit, when it can be decided.
   */
  async announce(tx: Tx, { id, tool, arguments: input }: BeforeToolCall): Promise<void> {
    const { workspaceId, id: task, agent } = this.#task;
    const { hooks, hub, signals } = this.#parts;
    const log = this.#log;
    log.flush();
    const data = { call_id: id, tool, arguments: input };
    const from = log.savedUpTo;
    const eventId = log.nextId;
    const frame = encodeFrame(eventId, "approval.required", data);
    saveEvents(tx, workspaceId, task, from + 1, [...log.after(from), frame]);
    hub.rest(tx, { workspaceId, id: task }, eventId);
    await hooks.approvalRequired(tx, { workspaceId, task, callId: id, agent, tool });
    tx.onCommit(() => {
      // A person may have decided on another node before this one learns of its own commit. The event is then read
      // from the store.
      if (!log.closed && log.nextId === eventId) log.publish("approval.required", data);
      log.saved(eventId);
      signals.changed.emit({ workspaceId, task });
      signals.approvalChanged.emit({ workspaceId, task, callId: id });
    });
  }

  async #saveEarly(): Promise<void> {
    try {
      await this.#parts.db.tx(null, (tx) => this.save(tx), { single: true, turnOf: this.#task.workspaceId });
      this.#saveAt = UNSAVED_BYTES;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      // The end of the step will show whether the store can be written. Until then the events stay in memory.
      this.#saveAt = this.#log.unsavedBytes + UNSAVED_BYTES;
    }
  }

  /** Called before using ids beyond the stored ceiling. After a crash, new events start above every id ever sent. */
  async #raiseCeiling(): Promise<void> {
    const ceiling = this.#log.nextId + CEILING_STEP;
    const { workspaceId, id } = this.#task;
    await this.#parts.db.tx(null, async (tx) => raiseEventCeiling(tx, workspaceId, id, ceiling), {
      single: true,
      turnOf: workspaceId,
    });
    this.#ceiling = ceiling;
  }
}

/**
 * Whether a call was presented before the run and still has the arguments that were last shown. If they were changed
 * before the call was presented again, the run that presented it has published them.
 */
function isAsAsked(approval: Approval | undefined): boolean {
  if (!approval) return false;
  return approval.status !== "approved" || approval.argumentsSeq === approval.pendingSeq;
}

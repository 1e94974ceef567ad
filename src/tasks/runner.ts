import type { Agent } from "../access/agents.ts";
import { tokenIdOf } from "../access/caller.ts";
import type { Grant } from "../access/grant.ts";
import { allowsModel, allowsTier, type TierPolicy } from "../access/policy.ts";
import {
  AgentDenied,
  type AgentEvent,
  type AgentFailed,
  type BeforeToolCall,
  runAgent,
  type ToolCall,
} from "../agents/index.ts";
import { pause } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { ToolAnswer } from "../connectors/source.ts";
import { StoreUnavailable, type Tx } from "../store/db.ts";
import { AwaitingApproval } from "./approvals/present.ts";
import type { ApprovalWithTexts } from "./approvals/rows.ts";
import { WholeCharacters } from "./characters.ts";
import type { EventLog } from "./event-log.ts";
import { saveEvents } from "./event-store.ts";
import { evidenceHooks } from "./evidence.ts";
import type { Ending } from "./finish.ts";
import { encodeFrame } from "./frames.ts";
import {
  AGENT_STOPPED,
  BetweenCalls,
  deniedEnding,
  failure,
  interruptionOf,
  type RunSignals,
  stoppedEnding,
  TOKEN_ENDED,
  TOKEN_ENDED_WORDS,
  unrecorded,
  WORKSPACE_STOPPED,
} from "./interruption.ts";
import type { OwedCharge } from "./lost.ts";
import { runOwnCall } from "./own-call.ts";
import type { TaskParts } from "./parts.ts";
import { loadProgress, type OwnCall } from "./progress.ts";
import { markRunning, raiseEventCeiling } from "./store.ts";
import type { Task } from "./task.ts";

/** Why a run ends without the task's end: the process stops, or a person is to decide. */
export type Pause = "shutdown" | "awaiting";

/** The id of a task's first event after `task.created`, in the process that took it. */
const FIRST_RUN_EVENT = 2;
/** Event ids that a started task may use before it has to say so in the store again. */
const CEILING_STEP = 4096;
/** Frames that may still be made, of text that waits for the turn's end, after the ids were last looked at. */
const UNNUMBERED = 2;
/**
 * Bytes of events that wait for the end of their step: past that they are stored in the middle of it, so that long answers of
 * many tasks do not pile up in memory. Should the process die before the step's end, `output.reset` takes them back.
 */
const UNSAVED_BYTES = 32 * 1024;
/** UTF-16 units that a task's models may send: bounds the memory that its events take. */
const OUTPUT_LIMIT = 1_000_000;

/**
 * One run of a task, from where it stands to its end, or to a person's decision. It tells the task's events and
 * writes what lasts through the hooks around each call; `run` answers how it ended, and leaves it to its caller to write that.
 */
export class TaskRun {
  readonly #parts: TaskParts;
  readonly #task: Task;
  readonly #log: EventLog;
  readonly #signal: AbortSignal;
  readonly #draining: AbortSignal;
  /** Of the token that dispatched the task; null: the operator did. */
  readonly #grant: Grant | null;
  #ceiling = 0;
  #saveAt = UNSAVED_BYTES;
  #policy: TierPolicy | null = null;
  #agentTools: readonly string[] = [];
  #approvals: readonly string[] | null = null;
  readonly #characters = new WholeCharacters();
  #started = false;
  #asked: ReadonlyMap<string, ApprovalWithTexts> = new Map();
  #owed: OwedCharge | null = null;
  /** The definitions of the tools as the run has taken them up: those are what is called. */
  readonly #taken = new Map<string, string | undefined>();

  constructor(parts: TaskParts, task: Task, log: EventLog, { signal, draining }: RunSignals) {
    this.#parts = parts;
    this.#task = task;
    this.#log = log;
    this.#signal = signal;
    this.#draining = draining;
    const { workspaceId, createdBy } = task;
    const token = tokenIdOf({ actor: createdBy });
    this.#grant = token === null ? null : parts.tokens.grantOf(workspaceId, token);
  }

  /** What a model call cost that could not be written, for the task's end to settle. */
  get owed(): OwedCharge | null {
    return this.#owed;
  }

  async run(): Promise<Ending | Pause> {
    const { agents, clock, db, door, ids, tools } = this.#parts;
    const { workspaceId, agentId, tier, prompt } = this.#task;
    if (this.#signal.aborted) return interrupted(this.#signal);
    if (this.#draining.aborted) return "shutdown";
    const agent = await agents.byId(workspaceId, agentId);
    // Also where the process died between the stop and the cancelling of what the agent had queued.
    if (!agent) return stoppedEnding("The agent was removed.");
    if (agent.status === "stopped") return stoppedEnding(this.#whyStopped());
    if (prompt === null) return failure("internal", "The prompt was erased before the task ran.");
    this.#take(agent);
    // The token's scopes were held against the list when the task was accepted. Agent and connectors may have changed
    // since: a task whose tools are not there any more does not begin. What goes while it runs is offered and called no more.
    const scopes = this.#task.tools.map((tool) => `tools:${tool}`);
    const allowsTool = (name: string) => tools.allows(workspaceId, name, { tools: this.#agentTools, scopes });
    const mayRepeat = (tool: string) => tools.mayRepeat(workspaceId, tool);
    const { messages, isInStep, asked, own, answer } = await loadProgress(db, this.#task, mayRepeat);
    this.#ceiling = this.#log.nextId + CEILING_STEP;
    this.#asked = asked;
    const hooks = this.#hooks(allowsTool);
    // What follows is told, and may be saved, before a call's intent moves the ceiling: the next process must not use
    // these ids again. A task that this process took tells no more than one event until then, for which recovery leaves room.
    if (own || this.#log.nextId > FIRST_RUN_EVENT) await this.#raiseCeiling();
    if (own) return this.#runOwnCall(own, hooks);
    // One that has begun goes on without what is not there any more: its calls of it are refused, and its model told.
    const named = messages.length === 0 ? this.#task.tools : this.#task.tools.filter(allowsTool);
    let models: ReturnType<typeof door.open>;
    let taskTools: ReturnType<typeof tools.resolve>;
    try {
      models = door.open(() => this.#policy ?? agent.tierPolicy, tier);
      // Only a run that goes on from a decision makes calls that were approved.
      if (asked.size > 0) {
        for (const name of named) this.#taken.set(name, tools.definitionOf(workspaceId, name));
      }
      taskTools = tools.resolve(
        workspaceId,
        named,
        { tools: agent.tools, scopes },
        { workspaceId, agentId, actor: this.#task.createdBy, via: this.#log.via },
      );
    } catch (error) {
      if (error instanceof Problem) return failure("model_unavailable", error.message);
      throw error;
    }
    // A task that waited for a person goes on as if it had not.
    if (!isInStep || asked.size === 0) {
      this.#log.publish("task.started", { model: models[0]?.id ?? "", tier });
    }
    if (this.#task.eventCeiling > 0 && !isInStep) this.#log.publish("output.reset", {});
    if (answer !== null) return this.#finishWith(answer);

    const events = runAgent({
      model: models,
      prompt,
      messages,
      tools: taskTools,
      maxSteps: agent.maxSteps,
      maxOutputCharacters: OUTPUT_LIMIT,
      signal: this.#signal,
      newId: () => ids("call"),
      now: () => clock.monotonic(),
      wait: (ms) => this.#pause(ms),
      policy: {
        allowModel: (model) => this.#allowsModel(model),
        allowTool: allowsTool,
      },
      hooks,
      ...(agent.instructions === null ? {} : { instructions: agent.instructions }),
    });
    for await (const event of events) {
      if (event.type === "agent.failed") return this.#failed(event);
      if (event.type !== "output.delta") this.#publishRest(event.type === "output.reset");
      if (event.type === "agent.finished") {
        return { status: "succeeded", error: null, output: event.output.toWellFormed() };
      }
      // Before the framework chooses the step's first model.
      if (event.type === "step.started") await this.#refreshPolicy();
      this.#publish(event);
      if (this.#log.nextId + UNNUMBERED >= this.#ceiling) await this.#raiseCeiling();
      if (this.#log.unsavedBytes >= this.#saveAt) await this.#saveEarly();
    }
    throw new Error("the run ended without its last event");
  }

  #allowsModel(model: string): boolean {
    const { tier } = this.#task;
    return this.#policy !== null && allowsTier(this.#policy, tier) && allowsModel(this.#policy, model);
  }

  #hooks(allowsTool: (tool: string) => boolean) {
    const { tools } = this.#parts;
    const { workspaceId } = this.#task;
    return evidenceHooks(this.#parts, {
      definitionOf: (tool) => this.#definitionOf(tool),
      task: this.#task,
      enter: (tx) => this.#enter(tx),
      refreshPolicy: () => this.#refreshPolicy(),
      allows: (model) => this.#allowsModel(model),
      allowsTool,
      asked: this.#asked,
      announce: (tx, call) => this.#announce(tx, call),
      needsApproval: (tool) => tools.needsApproval(workspaceId, tool, this.#approvals),
      saveEvents: (tx) => this.#saveEvents(tx),
      owe: (charge) => {
        this.#owed = charge;
      },
    });
  }

  #definitionOf(tool: string): string | undefined {
    const hash = this.#parts.tools.definitionOf(this.#task.workspaceId, tool);
    const taken = this.#taken.get(tool);
    return taken === undefined || taken === hash ? hash : undefined;
  }

  async #runOwnCall(
    own: OwnCall,
    { beforeToolCall, afterToolCall }: ReturnType<typeof evidenceHooks>,
  ): Promise<Ending | Pause> {
    const { answers, clock, log, tools } = this.#parts;
    const { id, workspaceId, agentId, createdBy } = this.#task;
    this.#publish({ type: "tool.call", ...own.call });
    const run = {
      ...{ tools, clock, log, signal: this.#signal, before: beforeToolCall, after: afterToolCall },
      actor: { workspaceId, agentId, actor: createdBy, via: this.#log.via },
      answered: (answer: ToolAnswer) => answers.put(id, answer),
      ended: (call: ToolCall, status: string, durationMs: number) =>
        this.#log.publish("tool.result", {
          id: call.id,
          tool: call.tool,
          status,
          duration_ms: Math.round(durationMs),
        }),
    };
    const ending = await runOwnCall(run, own);
    return this.#signal.aborted && ending !== "awaiting" ? interrupted(this.#signal) : ending;
  }

  /** The last answer was there when the process died. */
  #finishWith(answer: string): Ending {
    if (answer !== "") this.#log.publishText(answer);
    return { status: "succeeded", error: null, output: answer.toWellFormed() };
  }

  #publish(event: Exclude<AgentEvent, { type: "agent.finished" | "agent.failed" }>): void {
    switch (event.type) {
      case "output.delta": {
        const text = this.#characters.take(event.text);
        if (text !== "") this.#log.publishText(text);
        return;
      }
      case "output.reset":
        this.#log.publish("output.reset", {});
        return;
      case "model.fallback":
        this.#log.publish("model.fallback", { from: event.from, to: event.to, reason: event.reason });
        return;
      case "tool.call":
        // Its readers were told when a person was asked; they are told again where that person has changed it.
        if (isAsAsked(this.#asked.get(event.id))) return;
        this.#log.publish("tool.call", { id: event.id, tool: event.tool, arguments: event.arguments });
        return;
      case "tool.result":
        this.#log.publish("tool.result", {
          id: event.id,
          tool: event.tool,
          status: event.status,
          duration_ms: Math.round(event.durationMs),
        });
        return;
      case "step.started":
      case "step.finished":
      case "model.started":
        return;
    }
  }

  /** Nobody hears of it before they can decide on it. */
  async #announce(tx: Tx, { id, tool, arguments: input }: BeforeToolCall): Promise<void> {
    const { workspaceId, id: task, agent } = this.#task;
    const log = this.#log;
    log.flush();
    const data = { call_id: id, tool, arguments: input };
    const from = log.savedUpTo;
    const eventId = log.nextId;
    const frame = encodeFrame(eventId, "approval.required", data);
    await saveEvents(tx, workspaceId, task, from + 1, [...log.after(from), frame]);
    await this.#parts.watch.approvalRequired(tx, { workspaceId, task, callId: id, agent, tool });
    tx.onCommit(() => {
      log.publish("approval.required", data);
      log.saved(eventId);
      this.#parts.watch.taskChanged(workspaceId, task);
      this.#parts.watch.approvalChanged(workspaceId, task, id);
    });
  }

  #publishRest(isThrownAway: boolean): void {
    const text = this.#characters.rest();
    if (text !== "" && !isThrownAway) this.#log.publishText(text);
  }

  #failed(event: AgentFailed): Ending | Pause {
    if (event.cause instanceof AwaitingApproval) return "awaiting";
    if (event.cause instanceof BetweenCalls) return "shutdown";
    if (event.code === "cancelled") return interrupted(this.#signal);
    if (event.cause instanceof StoreUnavailable) return unrecorded();
    if (event.cause instanceof AgentDenied) return deniedEnding(event.cause);
    if (event.code === "denied") return failure("model_unavailable", event.message);
    if (event.code === "internal" && event.cause !== undefined) {
      this.#parts.log.error("a task failed here", { task: this.#task.id, error: event.cause });
    }
    return failure(event.code, event.message);
  }

  /** For a provider that wants to be left alone for a while. @throws BetweenCalls: nothing is out that a stop would wait for */
  async #pause(ms: number): Promise<void> {
    try {
      await pause(ms, this.#parts.clock, AbortSignal.any([this.#signal, this.#draining]));
    } catch (reason) {
      throw this.#signal.aborted ? reason : new BetweenCalls();
    }
  }

  #whyStopped(): string {
    return this.#parts.workspaces.isStopped(this.#task.workspaceId) ? WORKSPACE_STOPPED : AGENT_STOPPED;
  }

  /** In the transaction of each call's intent. The first one is also what makes the task run: one sync for both. */
  async #enter(tx: Tx) {
    if (this.#draining.aborted) throw new BetweenCalls();
    if (!this.#started) {
      const { workspaceId, id } = this.#task;
      const marked = await markRunning(tx, workspaceId, id, this.#parts.clock.now(), this.#ceiling);
      if (!marked) throw new Error("a queued task is not queued in the store");
      tx.onCommit(() => {
        this.#started = true;
        this.#parts.watch.taskChanged(workspaceId, id);
      });
    }
    return this.#refreshAgent(tx);
  }

  async #refreshAgent(tx: Tx) {
    const agent = await this.#parts.agents.byId(this.#task.workspaceId, this.#task.agentId, tx);
    if (!agent) throw new AgentDenied("agent_stopped", "The agent was removed.");
    if (agent.status === "stopped") throw new AgentDenied("agent_stopped", this.#whyStopped());
    // Nothing is sent for a token that has ended, however long ago it dispatched the task.
    const holds = this.#grant?.holds(tx) ?? true;
    if (!(typeof holds === "boolean" ? holds : await holds))
      throw new AgentDenied(TOKEN_ENDED, TOKEN_ENDED_WORDS);
    this.#take(agent);
    return agent;
  }

  /** Of an agent that is gone the last policy stays: the next call is refused for that reason. */
  async #refreshPolicy(): Promise<void> {
    const agent = await this.#parts.agents.byId(this.#task.workspaceId, this.#task.agentId);
    if (agent) this.#take(agent);
  }

  /** What the agent may use, as last read. */
  #take(agent: Agent): void {
    this.#policy = agent.tierPolicy;
    this.#agentTools = agent.tools;
    this.#approvals = agent.approvals;
  }

  async #saveEarly(): Promise<void> {
    try {
      await this.#parts.db.tx((tx) => this.#saveEvents(tx), { single: true });
      this.#saveAt = UNSAVED_BYTES;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      // The step's end will tell whether it can be written; until then memory has to hold them.
      this.#saveAt = this.#log.unsavedBytes + UNSAVED_BYTES;
    }
  }

  async #saveEvents(tx: Tx): Promise<void> {
    const log = this.#log;
    log.flush();
    const from = log.savedUpTo;
    const to = log.nextId - 1;
    if (to === from) return;
    await saveEvents(tx, this.#task.workspaceId, this.#task.id, from + 1, log.after(from));
    tx.onCommit(() => log.saved(to));
  }

  /** Before more ids are used than the store knows of: after a crash, new events start above every id ever sent. */
  async #raiseCeiling(): Promise<void> {
    const ceiling = this.#log.nextId + CEILING_STEP;
    await this.#parts.db.tx((tx) => raiseEventCeiling(tx, this.#task.workspaceId, this.#task.id, ceiling), {
      single: true,
    });
    this.#ceiling = ceiling;
  }
}

/** Whether a person was asked for a call before the run, and has left its arguments as they were. */
function isAsAsked(approval: ApprovalWithTexts | undefined): boolean {
  if (!approval) return false;
  return approval.status !== "approved" || approval.argumentsSeq === approval.firstSeq;
}

/** What the signal makes of a run that was broken off. */
function interrupted(signal: AbortSignal): Ending | Pause {
  return interruptionOf(signal)?.ending ?? "shutdown";
}

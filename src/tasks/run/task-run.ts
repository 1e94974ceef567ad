import {
  AgentDenied,
  type AgentFailed,
  type Hooks,
  type Message,
  type OutputOption,
  runAgent,
} from "../../agents/index.ts";
import { pause } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { enterTurn } from "../../base/inflow.ts";
import { StoreUnavailable } from "../../store/db.ts";
import { AwaitingApproval } from "../approvals/present.ts";
import { ClaimLost } from "../claims/claims.ts";
import type { TaskEnding, UnwrittenOutcome } from "../ending/finish.ts";
import {
  DrainInterrupt,
  deniedEnding,
  failure,
  interruptionOf,
  type RunSignals,
  stoppedEnding,
  unrecorded,
} from "../ending/interruption.ts";
import type { EventLog } from "../events/log.ts";
import { DocumentUnavailable } from "../input/documents.ts";
import { isValidOutput, outputOption } from "../input/output-schema.ts";
import type { TaskParts } from "../parts.ts";
import type { Task } from "../task.ts";
import { CallEvidence } from "./call-evidence.ts";
import { CallGuard } from "./call-guard.ts";
import type { OpenConversation } from "./conversation-memory.ts";
import { type FirstWrite, NotDispatched } from "./first-write.ts";
import { RunJournal } from "./journal.ts";
import { ModelEvidence } from "./model-evidence.ts";
import { askedMessages } from "./model-messages.ts";
import { runClientCall } from "./own-call.ts";
import { type DirectTaskCall, loadProgress, NO_PROGRESS, type SavedProgress } from "./progress.ts";
import { RunRights } from "./rights.ts";
import { ToolEvidence } from "./tool-evidence.ts";

/** Why a run ends before its task: the process is stopping, or a person must decide. */
export type PauseReason = "shutdown" | "awaiting";

/**
 * The maximum number of UTF-16 code units that a task's models may send. This bounds the memory used by its events.
 */
const OUTPUT_LIMIT = 1_000_000;

/** The input for the task's models, and the form of their answer. */
interface AskedTask {
  readonly prompt: readonly Message[];
  readonly output: OutputOption | undefined;
}

/** The parts of a run, each constructed from those above it. */
interface Run {
  readonly progress: SavedProgress;
  readonly rights: RunRights;
  readonly journal: RunJournal;
  readonly models: ModelEvidence;
  readonly tools: ToolEvidence;
}

/**
 * One run of a task, from its current progress to its end or to a person's decision. Publishes the task's events and
 * records each call. `run` returns how it ended, which the caller writes.
 */
export class TaskRun {
  readonly #parts: TaskParts;
  readonly #task: Task;
  readonly #log: EventLog;
  /** Aborted when the task is interrupted, or loses the memory for its conversation. */
  readonly #signal: AbortSignal;
  readonly #lost = new AbortController();
  readonly #draining: AbortSignal;
  readonly #isNew: boolean;
  #models: ModelEvidence | null = null;

  /** @param first set if the run begins before its task is stored, so that nothing can be saved of it */
  constructor(
    parts: TaskParts,
    task: Task,
    log: EventLog,
    { signal, draining }: RunSignals,
    first: FirstWrite | null,
  ) {
    this.#parts = parts;
    this.#task = task;
    this.#log = log;
    this.#signal = AbortSignal.any([signal, this.#lost.signal]);
    this.#draining = draining;
    this.#isNew = first !== null;
    // The run may be waiting for its provider.
    void first?.isStored.then((isStored) => {
      if (!isStored) this.#lost.abort(new NotDispatched());
    });
  }

  /** The outcome of the last model call, for the transaction of the task's end. Null if no model was called. */
  get outcome(): UnwrittenOutcome | null {
    return this.#models;
  }

  async run(): Promise<TaskEnding | PauseReason> {
    if (this.#signal.aborted) return interrupted(this.#signal);
    if (this.#draining.aborted) return "shutdown";
    const { input } = this.#task;
    const rights = new RunRights(this.#parts, this.#task);
    const agent = await rights.refresh();
    // The process may also have died after the agent was stopped and before its queued tasks were cancelled.
    if (!agent) return stoppedEnding("The agent was removed.");
    if (agent.status === "stopped") return stoppedEnding(rights.whyStopped());
    if (input === null) return failure("internal", "The prompt was erased before the task ran.");
    const output = outputOption(input);
    const run = await this.#open(rights, output === undefined);
    const { own } = run.progress;
    await run.journal.prepare(own !== null);
    if (own) return this.#runOwnCall(run, own);
    const { answer } = run.progress;
    if (answer !== null && isValidOutput(output, answer)) return this.#useSaved(run, answer);
    const { conversations } = this.#parts;
    const conversation = conversations.open(this.#task.workspaceId, (error) => this.#lost.abort(error));
    try {
      const prompt = await askedMessages(this.#parts, this.#task, input, agent);
      return await this.#runAgent(run, { prompt, output }, conversation);
    } catch (error) {
      if (error instanceof AgentDenied) return deniedEnding(error);
      if (error instanceof DocumentUnavailable) return failure("document_unavailable", error.message);
      throw error;
    } finally {
      conversation.close();
    }
  }

  async #open(rights: RunRights, anyTextEnds: boolean): Promise<Run> {
    const { db, tools, approvals } = this.#parts;
    const task = this.#task;
    const mayRepeat = (tool: string) => tools.mayRepeat(task.workspaceId, tool);
    const progress = this.#isNew ? NO_PROGRESS : await loadProgress(db, task, mayRepeat, approvals);
    const journal = new RunJournal(this.#parts, task, this.#log, progress.asked);
    const guard = new CallGuard(this.#parts, task, rights, journal, this.#draining);
    const evidence = new CallEvidence(this.#parts, task);
    const around = { ...this.#parts, evidence, guard, rights, journal };
    const models = new ModelEvidence(around, anyTextEnds);
    this.#models = models;
    return {
      progress,
      rights,
      journal,
      models,
      tools: new ToolEvidence({ ...around, asked: progress.asked }),
    };
  }

  /** The process died after the final answer was saved. The documents and models that led to it may since have gone. */
  #useSaved({ journal }: Run, answer: string): TaskEnding {
    journal.started(this.#task.model ?? "");
    if (this.#task.eventCeiling > 0) journal.reset();
    journal.text(answer);
    return { status: "succeeded", error: null, output: answer.toWellFormed() };
  }

  async #runAgent(
    run: Run,
    { prompt, output }: AskedTask,
    conversation: OpenConversation,
  ): Promise<TaskEnding | PauseReason> {
    const { clock, modelGateway, ids, tools } = this.#parts;
    const { workspaceId, agentId, tier, createdBy, eventCeiling } = this.#task;
    const { rights, journal } = run;
    const { messages, isInStep, asked } = run.progress;
    const user = { tools: rights.agent.tools, scopes: rights.scopes };
    const turn = tools.turnToFind(workspaceId, this.#task.tools, user);
    if (turn) await turn;
    const { agent } = rights;
    // The agent and the connectors may have changed since the task was accepted. A new task whose tools are gone does
    // not begin. A resumed task continues without them: calls to these tools are refused, and the model is told.
    const isNew = messages.length === 0;
    const offered = isNew ? this.#task.tools : this.#task.tools.filter((tool) => rights.allowsTool(tool));
    let models: ReturnType<typeof modelGateway.open>;
    let taskTools: ReturnType<typeof tools.resolve>;
    try {
      models = modelGateway.open(() => rights.agent.tierPolicy, tier, workspaceId);
      // Only a run that resumes after a decision makes approved calls.
      if (asked.size > 0) rights.offer(offered);
      const actor = { workspaceId, agentId, actor: createdBy, via: this.#log.via };
      taskTools = tools.resolve(workspaceId, offered, user, actor);
    } catch (error) {
      if (error instanceof Problem) return failure("model_unavailable", error.message);
      throw error;
    }
    // A task that waited for a person continues as if it had not been interrupted.
    if (!isInStep || asked.size === 0) journal.started(models[0]?.id ?? "");
    if (eventCeiling > 0 && !isInStep) journal.reset();
    // A run that resumes may have a long conversation before it calls a model.
    conversation.hold([...prompt, ...messages]);
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
        allowModel: (model) => rights.allowsModel(model),
        allowTool: (tool) => rights.allowsTool(tool),
      },
      hooks: hooksOf(run, conversation),
      ...(agent.instructions === null ? {} : { instructions: agent.instructions }),
      ...(output && { output }),
    });
    for await (const event of events) {
      if (event.type === "agent.failed") return this.#failed(event);
      if (event.type !== "output.delta") journal.endText(event.type === "output.reset");
      if (event.type === "agent.finished") {
        return { status: "succeeded", error: null, output: event.output.toWellFormed() };
      }
      // MUST happen before the framework chooses the step's first model.
      if (event.type === "step.started") await rights.refresh();
      // The arguments are checked next, which can take 50 ms.
      if (event.type === "tool.call") await enterTurn(this.#task.workspaceId);
      journal.publish(event);
      await journal.keepUp();
    }
    throw new Error("the run ended without its last event");
  }

  async #runOwnCall(run: Run, own: DirectTaskCall): Promise<TaskEnding | PauseReason> {
    const { answers, clock, log, tools } = this.#parts;
    const { id, workspaceId, agentId, createdBy } = this.#task;
    const { journal } = run;
    journal.publish({ type: "tool.call", ...own.call });
    const ending = await runClientCall(
      {
        ...{ tools, clock, log, signal: this.#signal },
        before: (call) => run.tools.before(call),
        after: (call) => run.tools.after(call),
        actor: { workspaceId, agentId, actor: createdBy, via: this.#log.via },
        answered: (answer) => answers.put(id, answer),
        ended: (call, status, durationMs) => journal.toolResult(call, status, durationMs),
      },
      own,
    );
    return this.#signal.aborted && ending !== "awaiting" ? interrupted(this.#signal) : ending;
  }

  #failed(event: AgentFailed): TaskEnding | PauseReason {
    if (event.cause instanceof AwaitingApproval) return "awaiting";
    if (event.cause instanceof DrainInterrupt) return "shutdown";
    if (event.cause instanceof NotDispatched || event.cause instanceof ClaimLost) throw event.cause;
    const { reason } = this.#lost.signal;
    if (event.code === "cancelled" && this.#signal.reason === reason && reason instanceof AgentDenied)
      return deniedEnding(reason);
    if (event.code === "cancelled") return interrupted(this.#signal);
    if (event.cause instanceof StoreUnavailable) return unrecorded();
    if (event.cause instanceof AgentDenied) return deniedEnding(event.cause);
    if (event.code === "denied") return failure("model_unavailable", event.message);
    if (event.code === "internal" && event.cause !== undefined) {
      this.#parts.log.error("a task failed with an internal error", {
        task: this.#task.id,
        error: event.cause,
      });
    }
    return failure(event.code, event.message);
  }

  /**
   * Waits when a provider asks for a pause.
   * @throws DrainInterrupt on shutdown, since no call is in flight
   */
  async #pause(ms: number): Promise<void> {
    try {
      await pause(ms, this.#parts.clock, AbortSignal.any([this.#signal, this.#draining]));
    } catch (reason) {
      throw this.#signal.aborted ? reason : new DrainInterrupt();
    }
  }
}

function hooksOf({ models, tools }: Run, conversation: OpenConversation): Hooks {
  return {
    beforeModelCall(call) {
      conversation.hold(call.messages);
      return models.before(call);
    },
    afterModelCall: (call) => models.after(call),
    beforeToolCall: (call) => tools.before(call),
    afterToolCall: (call) => tools.after(call),
  };
}

/** How an interrupted run ends, according to its signal. */
function interrupted(signal: AbortSignal): TaskEnding | PauseReason {
  return interruptionOf(signal)?.ending ?? "shutdown";
}

import type { Agent } from "../../access/agents.ts";
import type { Tx } from "../../store/db.ts";
import { DrainInterrupt } from "../ending/interruption.ts";
import type { TaskParts } from "../parts.ts";
import { type OpenModelCall, openModelCall } from "../rows/charges.ts";
import { markRunning } from "../rows/tasks.ts";
import type { Task } from "../task.ts";
import type { RunJournal } from "./journal.ts";
import type { RunRights } from "./rights.ts";

/** Guards each model or tool call, in the transaction of its intent. */
export class CallGuard {
  readonly #parts: Pick<TaskParts, "clock" | "signals">;
  readonly #task: Task;
  readonly #rights: Pick<RunRights, "require">;
  readonly #journal: Pick<RunJournal, "ceiling">;
  readonly #draining: AbortSignal;
  #isMarked = false;

  constructor(
    parts: Pick<TaskParts, "clock" | "signals">,
    task: Task,
    rights: Pick<RunRights, "require">,
    journal: Pick<RunJournal, "ceiling">,
    draining: AbortSignal,
  ) {
    this.#parts = parts;
    this.#task = task;
    this.#rights = rights;
    this.#journal = journal;
    this.#draining = draining;
  }

  /**
   * Admits a call. The first one also marks the task as running, so that both need only one sync.
   * @returns the current agent
   * @throws DrainInterrupt while the process drains; AgentDenied `agent_stopped`, `invalid_token`
   */
  async enter(tx: Tx): Promise<Agent> {
    const agent = await this.admit(tx);
    await this.markRunning(tx);
    return agent;
  }

  /** Like `enter`, for a call that is refused or opened next. */
  async admit(tx: Tx): Promise<Agent> {
    if (this.#draining.aborted) throw new DrainInterrupt();
    return this.#rights.require(tx);
  }

  /** Writes down the model call that begins. If it is the first call, the same statement marks the task as running. */
  async open(tx: Tx, call: OpenModelCall): Promise<void> {
    const { workspaceId, id } = this.#task;
    if (this.#isMarked) openModelCall(tx, workspaceId, id, call);
    else await this.markRunning(tx, call);
  }

  /** Marks the task as running unless that has been done. */
  async markRunning(tx: Tx, call?: OpenModelCall): Promise<void> {
    if (this.#isMarked) return;
    const { workspaceId, id } = this.#task;
    const { clock, signals } = this.#parts;
    const start = { at: clock.now(), eventCeiling: this.#journal.ceiling, call };
    if (!(await markRunning(tx, workspaceId, id, start))) {
      throw new Error("a queued task is not queued in the store");
    }
    tx.onCommit(() => {
      this.#isMarked = true;
      signals.changed.emit({ workspaceId, task: id });
    });
  }
}

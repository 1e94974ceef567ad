import { isId } from "../../base/ids.ts";
import { TaskInterruption } from "../ending/interruption.ts";
import type { NodeTasks } from "../node-tasks.ts";
import type { TaskParts } from "../parts.ts";
import { recoverTasks } from "../recovery/recover.ts";
import { findOpenTask } from "../rows/tasks.ts";
import type { ClaimedWork } from "./claimed-work.ts";
import type { WorkKey } from "./claims.ts";

/** How many claims are released in one transaction. */
const AT_ONCE = 256;

/** The tasks that this node has claimed, as other nodes take them and give them. */
export class ClaimedTasks implements ClaimedWork {
  readonly #parts: TaskParts;
  readonly #tasks: NodeTasks;
  /** Ids of tasks that are being stored. */
  readonly #arriving: ReadonlySet<string>;
  /** Ids of tasks that are being taken over. */
  readonly #adopting = new Set<string>();

  constructor(parts: TaskParts, tasks: NodeTasks, arriving: ReadonlySet<string>) {
    this.#parts = parts;
    this.#tasks = tasks;
    this.#arriving = arriving;
  }

  names(id: string): boolean {
    return isId("task", id);
  }

  knows(workspaceId: number, id: string): boolean {
    return this.#arriving.has(id) || this.#tasks.knows(workspaceId, id);
  }

  get size(): number {
    return this.#tasks.size;
  }

  all(): readonly WorkKey[] {
    const stored = this.#tasks.all().filter(({ taskId }) => !this.#arriving.has(taskId));
    return stored.map(({ workspaceId, taskId }) => ({ workspaceId, id: taskId }));
  }

  async openIds(workspaceId: number): Promise<readonly string[]> {
    const { histories } = this.#parts;
    await histories.catchUp(workspaceId);
    return [...histories.of(workspaceId).openTasks.keys()];
  }

  async adopt(workspaceId: number, ids: readonly string[]): Promise<readonly string[]> {
    const tasks = this.#tasks;
    for (const id of ids) this.#adopting.add(id);
    try {
      const recovered = await recoverTasks(this.#parts, workspaceId, tasks.stopping, ids);
      tasks.scheduler.enqueueAll(tasks.add(workspaceId, recovered));
      return recovered.refused;
    } finally {
      for (const id of ids) this.#adopting.delete(id);
    }
  }

  async resume(workspaceId: number, id: string): Promise<boolean> {
    // It may have been read before it was queued again.
    if (this.#adopting.has(id)) return false;
    const resting = await this.#tasks.resting(id);
    if (!resting) return true;
    const task = await findOpenTask(this.#parts.db, workspaceId, id);
    if (task?.status === "queued") this.#tasks.enqueueResting(resting);
    return true;
  }

  async handOver(workspaceId: number, id: string, to: string): Promise<void> {
    const tasks = this.#tasks;
    if (tasks.takeQuiet(workspaceId, id)) return this.#release([{ workspaceId, id }], to);
    if (tasks.isEnding(id)) return;
    await tasks.abortRun(id, new TaskInterruption("handed_over", this.#parts.clock.now(), null, to));
    // The run reached a person's decision at the same moment.
    if (tasks.takeQuiet(workspaceId, id)) await this.#release([{ workspaceId, id }], to);
  }

  forget(workspaceId: number, id: string): void {
    if (this.#tasks.takeQuiet(workspaceId, id)) this.#endReading(id);
    else void this.#tasks.abortRun(id, new TaskInterruption("lost", this.#parts.clock.now()));
  }

  endStopped(workspaceId: number, agentId: number | null): Promise<void> {
    return this.#tasks.endStopped(workspaceId, agentId);
  }

  /** Releases all tasks that do not run, for other nodes. */
  async releaseQuiet(): Promise<void> {
    const keys = this.#tasks.quiet().map(({ workspaceId, taskId }) => ({ workspaceId, id: taskId }));
    const quiet = keys.filter(({ workspaceId, id }) => this.#tasks.takeQuiet(workspaceId, id));
    for (let from = 0; from < quiet.length; from += AT_ONCE) {
      await this.#release(quiet.slice(from, from + AT_ONCE), null);
    }
  }

  /** If the store refuses it, they are free when this node has left. */
  async #release(keys: readonly WorkKey[], to: string | null): Promise<void> {
    const { db, claims, log } = this.#parts;
    for (const { id } of keys) this.#endReading(id);
    try {
      await db.tx(null, async (tx) => claims.release(tx, keys, to));
    } catch (error) {
      log.warn("tasks cannot be given to other nodes yet", { tasks: keys.length, error });
    }
  }

  /** Readers go on where the task goes on. */
  #endReading(id: string): void {
    const { hub } = this.#parts;
    hub.find(id)?.close(null);
    hub.close(id);
  }
}

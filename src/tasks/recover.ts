import type { Db } from "../store/db.ts";
import { endTask } from "./end.ts";
import { failure } from "./interruption.ts";
import { recordLost } from "./lost.ts";
import type { TaskParts } from "./parts.ts";
import { hasLostSteps } from "./progress.ts";
import type { Queued } from "./scheduler.ts";
import { findTask, listOpenTasks, markQueued } from "./store.ts";
import type { Task } from "./task.ts";

/** A task that took the process down with it so often, over one and the same step, is not tried again. */
const ATTEMPT_LIMIT = 3;

/** Tasks of an earlier process, the oldest first. */
export interface Recovered {
  readonly queued: readonly Queued[];
  /** A person is still to decide. */
  readonly awaiting: readonly Queued[];
}

/**
 * What an earlier process left unfinished in a workspace. Queued tasks go on waiting. A running one goes on from its last
 * saved step; a call that was out is made known as lost.
 */
export async function recoverTasks(
  parts: TaskParts,
  workspaceId: number,
  stopping: AbortSignal,
): Promise<Recovered> {
  const queued: Queued[] = [];
  const awaiting: Queued[] = [];
  for (const open of await listOpenTasks(parts.db, workspaceId)) {
    const task = await findTask(parts.db, workspaceId, open.id);
    if (!task) continue;
    const log = parts.hub.open(task.id, Math.max(task.eventCeiling, 1) + 1);
    if (task.status === "awaiting_approval") {
      awaiting.push({ workspaceId, taskId: task.id, agentId: task.agentId });
      continue;
    }
    if (task.status !== "queued") {
      await parts.db.tx(async (tx) => {
        // What the calls cost died with the process that knew it.
        await recordLost(parts, tx, task, null);
        await markQueued(tx, workspaceId, task.id, false);
      });
    }
    // Asked of queued tasks as well: this process may be the second to die over the same task, between the two writes.
    const reason = await reasonToEnd(parts.db, task);
    if (reason === null) {
      queued.push({ workspaceId, taskId: task.id, agentId: task.agentId });
    } else {
      await endTask(parts, task, log, failure("interrupted", reason), {
        signal: stopping,
        stopping,
      });
    }
  }
  return { queued, awaiting };
}

async function reasonToEnd(db: Db, task: Task): Promise<string | null> {
  if (task.attempts >= ATTEMPT_LIMIT) return `The server stopped ${task.attempts} times over the same step.`;
  // Written by a version that kept no answers: nobody can say what a second run would do twice.
  if (await hasLostSteps(db, task)) {
    return "The server stopped while the task ran. It had called tools, and cannot go on from there.";
  }
  return null;
}

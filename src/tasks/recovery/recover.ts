import type { Agents } from "../../access/agents.ts";
import { OperatorError } from "../../base/errors.ts";
import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import type { ProvenTask } from "../../ledger/reading/proven-task.ts";
import { inListSql, listsOf } from "../../store/common-sql.ts";
import type { Db } from "../../store/db.ts";
import { ClaimLost } from "../claims/claims.ts";
import { type EndingSignals, failure } from "../ending/interruption.ts";
import { openCallsIn, recordLost, type UnsettledCall } from "../ending/lost-calls.ts";
import { EndingRetries } from "../ending/retries.ts";
import { endTask } from "../ending/store-retries.ts";
import { partsOf, type TaskParts } from "../parts.ts";
import type { QueuedTask } from "../queue/scheduler.ts";
import { findTask, markQueued } from "../rows/tasks.ts";
import { hasLostSteps } from "../run/progress.ts";
import type { Task, TaskStatus } from "../task.ts";
import { checkStoredTask } from "./check-stored.ts";
import { openHiddenTasks } from "./hidden-tasks.ts";
import { closeUnproven, endChanged } from "./refuse-stored.ts";
import { readTaskEvidence } from "./task-evidence.ts";

/** A task that crashes have interrupted this many times during the same step is not tried again. */
const ATTEMPT_LIMIT = 3;

/** `task.created` and `task.started`, which are sent before the store contains any event. */
const FIRST_EVENTS = 2;

/** The tasks of an earlier process, oldest first. */
export interface RecoveredTasks {
  readonly queued: readonly QueuedTask[];
  /** Tasks waiting for a person's decision. */
  readonly awaiting: readonly QueuedTask[];
  /** Tasks to end: the process died after their agent was stopped and before they were ended. */
  readonly stopped: readonly QueuedTask[];
  /** Tasks that are not resumed, because the ledger was changed. */
  readonly refused: readonly string[];
}

/** An unfinished task without its texts, since ten thousand may be queued. */
interface UnfinishedTask {
  readonly id: string;
  readonly status: TaskStatus;
  readonly agentId: number;
  readonly attempts: number;
  readonly eventCeiling: number;
  readonly hasCalls: number | boolean;
  readonly dispatchSeq: number;
}

/** An unfinished task whose rows agree with the ledger. */
interface TrustedTask {
  readonly open: UnfinishedTask;
  /** Calls that were in flight when the process died. */
  readonly lost: readonly UnsettledCall[];
}

/**
 * Recovers the unfinished tasks of a workspace. Queued tasks continue to wait. Running tasks are queued again, to
 * resume after their last saved step; calls that were in flight are recorded as lost.
 * @param claimed the tasks that this node has just claimed; null for all, if there are no other nodes
 * @param endReason why all of them are ended instead; null if they are not
 */
export async function recoverTasks(
  all: TaskParts,
  workspaceId: number,
  stopping: AbortSignal,
  claimed: readonly string[] | null,
  endReason: string | null = null,
): Promise<RecoveredTasks> {
  const queued: QueuedTask[] = [];
  const awaiting: QueuedTask[] = [];
  const stopped: QueuedTask[] = [];
  const isStopped = stoppedAgents(all.agents, workspaceId);
  const { trusted: found, refused } = await trustedTasks(all, workspaceId, stopping, claimed);
  for (const trusted of found) {
    const { open } = trusted;
    const recovered = { workspaceId, taskId: open.id, agentId: open.agentId };
    const parts = partsOf(all, recovered);
    if (!(await recoverTask(parts, workspaceId, trusted, stopping, endReason))) continue;
    if (await isStopped(open.agentId)) stopped.push(recovered);
    else (open.status === "awaiting_approval" ? awaiting : queued).push(recovered);
  }
  return { queued, awaiting, stopped, refused };
}

/** @returns false if the task has ended, or another node has taken it over */
async function recoverTask(
  parts: TaskParts,
  workspaceId: number,
  { open, lost }: TrustedTask,
  stopping: AbortSignal,
  endReason: string | null,
): Promise<boolean> {
  const log = parts.hub.open(open.id, Math.max(open.eventCeiling, FIRST_EVENTS) + 1);
  const isAwaiting = open.status === "awaiting_approval";
  // For tasks that never began or are waiting in order, the row is sufficient.
  const isUnstarted = open.status === "queued" && open.attempts < ATTEMPT_LIMIT && !open.hasCalls;
  if (endReason === null && lost.length === 0 && (isAwaiting || isUnstarted)) return true;
  const task = await findTask(parts.db, workspaceId, open.id);
  if (!task) return false;
  try {
    if (lost.length > 0 || task.status === "running") {
      await parts.db.tx(workspaceId, async (tx) => {
        // The costs of the calls were lost with the process.
        await recordLost(parts, tx, task, lost, null);
        markQueued(tx, workspaceId, task.id, false);
      });
    }
  } catch (error) {
    if (!(error instanceof ClaimLost)) throw error;
    log.close(null);
    parts.hub.close(open.id);
    return false;
  }
  // Checked for queued tasks too: an earlier attempt at recovery may have died between these two writes.
  const reason = endReason ?? (await reasonToEnd(parts.db, task));
  if (reason === null) return true;
  await endTask(parts, task, log, failure("interrupted", reason), signalsOf(stopping));
  return false;
}

/**
 * The open tasks whose rows agree with their seals and with the ledger. All others are reported, and either closed or
 * ended as failed. If the ledger itself cannot be verified, no task is resumed.
 */
async function trustedTasks(
  parts: TaskParts,
  workspaceId: number,
  stopping: AbortSignal,
  claimed: readonly string[] | null,
): Promise<{ readonly trusted: readonly TrustedTask[]; readonly refused: readonly string[] }> {
  const { db, lists, log } = parts;
  let stored: UnfinishedTask[] = [];
  let evidence: ReadonlyMap<string, ProvenTask>;
  try {
    if (claimed === null) {
      await openHiddenTasks(parts, workspaceId, parts.histories.of(workspaceId).openTasks);
      stored = await openTasks(parts, workspaceId);
    } else {
      stored = await unfinishedTasks(parts.db, workspaceId, claimed);
      if (await openHidden(parts, workspaceId, claimed, stored)) {
        stored = await unfinishedTasks(parts.db, workspaceId, claimed);
      }
    }
    if (stored.length === 0) return { trusted: [], refused: [] };
    const ids = new Set(stored.map(({ id }) => id));
    const first = Math.min(...stored.map(({ dispatchSeq }) => dispatchSeq));
    evidence = await readTaskEvidence(lists, workspaceId, ids, first);
    // If a row names a later entry than the one that dispatched its task, the ledger is read from the beginning.
    const isWhole = stored.every(({ id }) => evidence.get(id)?.dispatch);
    if (!isWhole) evidence = await readTaskEvidence(lists, workspaceId, ids, 1);
  } catch (error) {
    if (!(error instanceof LedgerChanged)) throw error;
    log.error("tasks are not resumed because the ledger entries that dispatched them were changed", {
      workspace: workspaceId,
      tasks: stored.length,
      error,
    });
    return { trusted: [], refused: stored.map(({ id }) => id) };
  }
  const trusted: TrustedTask[] = [];
  const signals = signalsOf(stopping);
  for (const open of stored) {
    const proven = evidence.get(open.id);
    const refused = { workspaceId, id: open.id, proven };
    const own = partsOf(parts, { workspaceId, taskId: open.id });
    const state = await checkStoredTask(db, workspaceId, open.id, proven);
    if (state === "trusted" && proven) trusted.push({ open, lost: openCallsIn(proven) });
    else if (state === "changed") await endChanged(own, refused, signals);
    else await closeUnproven(own, refused);
  }
  return { trusted, refused: [] };
}

/**
 * Opens those of the claimed tasks again that somebody has hidden: see `openHiddenTasks`. Ends the claims on those that
 * have ended, or that nobody has dispatched.
 * @returns whether there are any that were hidden
 * @throws LedgerChanged
 */
async function openHidden(
  parts: TaskParts,
  workspaceId: number,
  claimed: readonly string[],
  stored: readonly UnfinishedTask[],
): Promise<boolean> {
  const { db, claims, histories } = parts;
  const unfinished = new Set(stored.map(({ id }) => id));
  const others = claimed.filter((id) => !unfinished.has(id));
  if (others.length === 0) return false;
  // Now the ledger contains the ends of all tasks that were finished when the rows were read.
  await histories.catchUp(workspaceId);
  const { openTasks: open } = histories.of(workspaceId);
  const hidden = new Map(others.flatMap((id) => (open.has(id) ? [[id, open.get(id) ?? 0] as const] : [])));
  if (hidden.size > 0) await openHiddenTasks(parts, workspaceId, hidden);
  const ended = others.filter((id) => !hidden.has(id));
  if (ended.length > 0) {
    await db.tx(null, async (tx) => {
      for (const id of ended) claims.end(tx, workspaceId, id);
    });
  }
  return hidden.size > 0;
}

/**
 * The open tasks, in order of acceptance: those in the index of open tasks, and those that the ledger shows as
 * unfinished. Each is read by its key, so the two are compared. Reading all tasks by their keys took 2.8 s for a
 * million tasks in memory, and more than a minute from disk. A task that is missing from the key's index counts as
 * deleted: see `openHiddenTasks`.
 * @throws OperatorError if the index of open tasks differs from the rows
 */
async function openTasks({ db, histories }: TaskParts, workspaceId: number): Promise<UnfinishedTask[]> {
  const indexed = await db.all<{ id: string }>(
    "SELECT id FROM tasks WHERE workspace_id = $1 AND finished_at IS NULL",
    [workspaceId],
  );
  const ids = new Set(indexed.map(({ id }) => id));
  const keys = new Set([...ids, ...histories.of(workspaceId).openTasks.keys()]);
  const stored = await unfinishedTasks(db, workspaceId, [...keys]);
  requireIndexed(ids, stored);
  return stored;
}

/** Those of the tasks that have not ended, in order of acceptance. */
async function unfinishedTasks(
  db: Db,
  workspaceId: number,
  ids: readonly string[],
): Promise<UnfinishedTask[]> {
  const stored: UnfinishedTask[] = [];
  for (const list of listsOf([...ids].sort())) {
    // Without a condition on `finished_at`, which would let SQLite read the index of open tasks here too.
    const rows = await db.all<UnfinishedTask & { readonly finishedAt: number | null }>(
      `SELECT t.id, t.status, t.agent_id AS "agentId", t.attempts, t.event_ceiling AS "eventCeiling", t.dispatch_seq AS "dispatchSeq",
         t.finished_at AS "finishedAt",
         EXISTS (SELECT 1 FROM tool_calls c WHERE c.workspace_id = t.workspace_id AND c.task_id = t.id) AS "hasCalls"
       FROM tasks t WHERE t.workspace_id = $1 AND ${inListSql("t.id", 2)} ORDER BY t.id`,
      [workspaceId, ...list],
    );
    stored.push(...rows.filter(({ finishedAt }) => finishedAt === null));
  }
  return stored;
}

/**
 * Requires the index of open tasks to be complete: lists and stops read it, and writes to a row that it lacks fail.
 * @throws OperatorError
 */
function requireIndexed(indexed: ReadonlySet<string>, stored: readonly UnfinishedTask[]): void {
  if (indexed.size === stored.length && stored.every(({ id }) => indexed.has(id))) return;
  throw new OperatorError(
    `the index tasks_open of the database has ${indexed.size} tasks instead of ${stored.length}: another program has changed the file, or it is damaged`,
    "run `gatehouse ledger verify`, which reports what is damaged, and restore the data directory from a backup",
  );
}

/** Whether an agent is stopped or gone. Each agent is read only once. */
function stoppedAgents(agents: Agents, workspaceId: number): (agentId: number) => Promise<boolean> {
  const known = new Map<number, boolean>();
  return async (agentId) => {
    let isStopped = known.get(agentId);
    if (isStopped === undefined) {
      isStopped = (await agents.byId(workspaceId, agentId))?.status !== "active";
      known.set(agentId, isStopped);
    }
    return isStopped;
  };
}

function signalsOf(stopping: AbortSignal): EndingSignals {
  return { signal: stopping, stopping, retries: new EndingRetries() };
}

async function reasonToEnd(db: Db, task: Task): Promise<string | null> {
  if (task.attempts >= ATTEMPT_LIMIT)
    return `The server stopped ${task.attempts} times during the same step.`;
  // A version that saved no answers ran this task, so the calls that a second run would repeat are unknown.
  if (await hasLostSteps(db, task)) {
    return "The server stopped while the task was running. The task had called tools, so it cannot be resumed.";
  }
  return null;
}

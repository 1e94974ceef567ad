import type { DirectCallRecords } from "../../../gate/direct/open.ts";
import type { RunningCalls } from "../../../gate/direct/running-calls.ts";
import type { Nodes } from "../../../nodes/nodes.ts";
import type { Db } from "../../../store/db.ts";
import type { TaskParts } from "../../parts.ts";
import type { OtherQueues } from "../../queue/other-queues.ts";
import type { Scheduler } from "../../queue/scheduler.ts";
import { SharedQueues } from "../../queue/shared/queues.ts";
import type { ClaimedWork, OtherNodes } from "../claimed-work.ts";
import type { TaskClaims } from "../claims.ts";
import { SharedClaims } from "./claim-rows.ts";
import { SharedWork } from "./shared-work.ts";

export interface OpenClaimsParts extends Pick<TaskParts, "db" | "workspaces" | "clock" | "log"> {
  readonly nodes: Nodes;
  readonly direct: Pick<DirectCallRecords, "reportLeft"> & {
    readonly running: Pick<RunningCalls, "stopAgent" | "stopWorkspace">;
  };
}

/** How this node shares tasks and background responses with others. */
export interface OpenClaims {
  readonly claims: TaskClaims;
  readonly otherNodes: OtherNodes;
  /** Opens the queues of other nodes. Absent if there are none. */
  readonly openQueues?: (scheduler: Scheduler) => OtherQueues;
  /** Adds work of this node that others may take over. MUST be called before the tasks are started. */
  add(work: ClaimedWork): void;
}

const OPEN_RESPONSES = `SELECT 1 FROM task_claims c JOIN responses r ON r.workspace_id = c.workspace_id AND r.id = c.task_id
  WHERE c.workspace_id = $1 AND r.outcome_seq = 0`;
const OPEN_TASKS = "SELECT 1 FROM tasks WHERE workspace_id = $1 AND finished_at IS NULL";

export function openSharedClaims({ db, nodes, workspaces, direct, clock, log }: OpenClaimsParts): OpenClaims {
  const claims = new SharedClaims(db, nodes);
  const { running } = direct;
  let queues: SharedQueues | null = null;
  const otherNodes: SharedWork = new SharedWork({
    ...{ claims, nodes, workspaces, clock, log },
    hasOpenTasks: (workspaceId, agentId) => hasOpenTasks(db, workspaceId, agentId),
    stopped: () => stopped(db),
    isStopped: (workspaceId, agentId) => isStopped(db, workspaceId, agentId),
    reportLeft: () => direct.reportLeft(),
    closeQueues: () => queues?.close(),
    balance: async () => queues?.balance(),
    holdQueue: () => queues?.hold() ?? (() => {}),
    endCalls(workspaceId, agentId) {
      if (agentId === null) running.stopWorkspace(workspaceId);
      else running.stopAgent(workspaceId, agentId);
    },
  });
  return {
    ...{ claims, otherNodes },
    add: (work) => otherNodes.add(work),
    openQueues(scheduler) {
      queues = new SharedQueues({
        ...{ db, nodes, scheduler, clock, log },
        workspace: (id) => workspaces.get(id),
        takeWaiting: (...waiting) => otherNodes.takeWaiting(...waiting),
      });
      return queues;
    },
  };
}

async function hasOpenTasks(db: Db, workspaceId: number, agentId: number | null): Promise<boolean> {
  for (const open of [OPEN_TASKS, OPEN_RESPONSES]) {
    const found =
      agentId === null
        ? await db.get(`${open} LIMIT 1`, [workspaceId])
        : await db.get(`${open} AND agent_id = $2 LIMIT 1`, [workspaceId, agentId]);
    if (found) return true;
  }
  return false;
}

/** There are few of them, and both tables are small. */
function stopped(
  db: Db,
): Promise<readonly { readonly workspaceId: number; readonly agentId: number | null }[]> {
  return db.all(
    `SELECT workspace_id AS "workspaceId", id AS "agentId" FROM agents WHERE status = 'stopped'
     UNION ALL SELECT id, NULL FROM workspaces WHERE status = 'stopped'`,
  );
}

async function isStopped(db: Db, workspaceId: number, agentId: number | null): Promise<boolean> {
  const workspace = "SELECT 1 FROM workspaces WHERE id = $1 AND status = 'stopped'";
  const found =
    agentId === null
      ? await db.urgent.get(workspace, [workspaceId])
      : await db.urgent.get(
          `${workspace} UNION ALL SELECT 1 FROM agents WHERE workspace_id = $1 AND id = $2 AND status = 'stopped' LIMIT 1`,
          [workspaceId, agentId],
        );
  return found !== undefined;
}

import type { Agent } from "../../access/agents.ts";
import type { RunningCalls } from "../../gate/direct/running-calls.ts";
import type { TaskService } from "../service.ts";

export interface StoppedWork {
  readonly tasks: Pick<TaskService, "endStopped">;
  /** Tool and model calls made outside of tasks. */
  readonly running: Pick<RunningCalls, "stopAgent" | "stopWorkspace">;
}

/** Ends all work of a stopped agent: its tasks, and its own calls. */
export async function endAgentsWork(
  { tasks, running }: StoppedWork,
  workspaceId: number,
  agent: Pick<Agent, "id">,
): Promise<void> {
  running.stopAgent(workspaceId, agent.id);
  await tasks.endStopped(workspaceId, agent.id);
}

/** Ends all work of a stopped workspace, including calls that are not made as an agent. */
export async function endWorkspacesWork({ tasks, running }: StoppedWork, workspaceId: number): Promise<void> {
  running.stopWorkspace(workspaceId);
  await tasks.endStopped(workspaceId, null);
}

import { useCallback, useEffect } from "preact/hooks";
import type { Agent, List, Task, Workspace } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";
import { type Loaded, useData } from "../../state/use-data.ts";
import { merged, NEWEST } from "./newest.ts";
import type { RangeName } from "./ranges.ts";
import { useChange } from "./use-change.ts";
import { useSparingly } from "./use-sparingly.ts";
import { type UsageReading, useUsageReport } from "./use-usage-report.ts";

const MOST = 200;

/** Data shared by several parts of the page. */
export interface OverviewReads {
  readonly agents: Loaded<List<Agent>>;
  readonly tasks: Loaded<List<Task>>;
  readonly workspace: Loaded<Workspace>;
  readonly usage: UsageReading;
}

/** Reads what the reader's token permits. Data that changes with every task is read at most once a minute. */
export function useReads(range: RangeName): OverviewReads {
  const { can, feed } = useSession();
  const agents = useData("GET /v1/agents", can("agents:read") ? { query: { limit: MOST } } : null, [
    "agent.changed",
  ]);
  const tasks = useData("GET /v1/tasks", can("tasks:read") ? { query: { limit: NEWEST } } : null);
  const { change: changeTasks } = tasks;
  useEffect(
    () =>
      feed.listen("task.changed", (told) =>
        changeTasks((list) => ({ ...list, data: merged(list.data, told) })),
      ),
    [feed, changeTasks],
  );
  const workspace = useData("GET /v1/workspace", can("settings:write") ? {} : null, [
    "workspace.changed",
    "budget.spent",
  ]);
  const usage = useUsageReport(range, can("ledger:read"));
  const { reload: readTasks } = tasks;
  const { reload: readWorkspace } = workspace;
  const { reload: readUsage } = usage;
  const again = useCallback(() => {
    readTasks();
    readWorkspace();
    readUsage();
  }, [readTasks, readWorkspace, readUsage]);
  useChange(useSparingly(again));
  return { agents, tasks, workspace, usage };
}

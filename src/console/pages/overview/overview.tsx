import type { JSX } from "preact";
import { useLocation } from "preact-iso";
import { Page } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import { RecentCalls } from "../calls/recent-calls.tsx";
import { Decisions } from "./decisions.tsx";
import { Figures } from "./figures.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { MatterList } from "./matter-list.tsx";
import { hasClientCalls, OverTime } from "./over-time.tsx";
import { rangeNamed } from "./ranges.ts";
import { useReads } from "./reads.ts";
import { RecentTasks } from "./recent-tasks.tsx";

/** The workspace at a glance, and what needs attention. */
export function Overview(): JSX.Element {
  const { query } = useLocation();
  const { can } = useSession();
  const range = rangeNamed(query.range);
  const reads = useReads(range);
  const { agents, tasks } = reads;
  const hasNoAgent = agents.data?.data.length === 0;
  const hasNoTask = tasks.data?.data.length === 0;
  const isFirst = hasNoAgent || hasNoTask;
  const { report } = reads.usage;
  // A workspace may have only clients, and no tasks.
  const hasCalls = report !== undefined && hasClientCalls(report);
  return (
    <Page title="Overview">
      <Figures workspace={reads.workspace.data} />
      {isFirst && <FirstSteps hasAgent={!hasNoAgent} hasTask={!hasNoTask} />}
      <div class="overview-columns">
        <MatterList reads={reads} />
        {can("approvals:write") && <Decisions />}
      </div>
      {can("tasks:read") && !hasNoTask && <RecentTasks tasks={tasks} />}
      {can("ledger:read") && hasCalls && <RecentCalls agent={report.agent} />}
      {can("ledger:read") && (hasCalls || !hasNoTask) && <OverTime range={range} usage={reads.usage} />}
    </Page>
  );
}

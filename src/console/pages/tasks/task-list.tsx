import type { JSX } from "preact";
import { useLocation } from "preact-iso";
import type { TaskStatus } from "../../../http/api.ts";
import { addressOf } from "../../api/client.ts";
import { Select } from "../../parts/field.tsx";
import { Empty, Page } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { Rows } from "../../parts/rows.tsx";
import { useSession } from "../../state/session.tsx";
import { useNarrowScreen } from "../../state/use-narrow-screen.ts";
import { MayNotRead } from "./may-not-read.tsx";
import { NewTask } from "./new-task.tsx";
import type { TaskListFilter } from "./rows.ts";
import { TaskColumns, TaskRowView } from "./task-row.tsx";
import { type AgentList, useAgents } from "./use-agents.ts";
import { useTasks } from "./use-tasks.ts";

const STATUSES: readonly TaskStatus[] = [
  "queued",
  "running",
  "awaiting_approval",
  "succeeded",
  "failed",
  "cancelled",
];
const ROW_PX = 40;
const CARD_PX = 96;
/** The borders above and below. */
const FRAME_PX = 2;
/** The height left for the rows. */
const SEEN = "max(18rem, 100dvh - 20.5rem)";

export function TaskList(): JSX.Element {
  const { can } = useSession();
  return can("tasks:read") ? <AllTasks /> : <MayNotRead title="Tasks" />;
}

/**
 * All tasks of the workspace, updated live. `?new` opens the form: `?new=helper` for that agent, `?new&from=task_…`
 * as a copy of that task, `?new&continue=task_…` to continue it.
 */
function AllTasks(): JSX.Element {
  const { can } = useSession();
  const { query, route } = useLocation();
  const filter: TaskListFilter = {
    agent: query.agent ?? "",
    status: STATUSES.find((status) => status === query.status) ?? "",
  };
  const known = useAgents();
  const tasks = useTasks(filter);
  const isNarrow = useNarrowScreen();
  const rowHeight = isNarrow ? CARD_PX : ROW_PX;
  const isFiltered = filter.agent !== "" || filter.status !== "";
  const mayRun = can("tasks:write");
  const here = addressOf("/console/tasks", {}, filter);
  const toNew = `${here}${here.includes("?") ? "&" : "?"}new=${encodeURIComponent(filter.agent)}`;

  return (
    <Page
      title="Tasks"
      lead="The agents' tasks and their results, updated live."
      actions={
        mayRun && (
          <a class="button button-main" href={toNew}>
            New task
          </a>
        )
      }
    >
      <Filters
        filter={filter}
        known={known}
        change={(changed) => route(addressOf("/console/tasks", {}, { ...filter, ...changed }), true)}
      />
      <ProblemNote problem={tasks.problem} retry={tasks.reload} />
      {tasks.items.length > 0 && (
        <div class="task-table">
          {!isNarrow && <TaskColumns />}
          <Rows
            key={`${isNarrow} ${filter.agent} ${filter.status}`}
            items={tasks.items}
            rowHeight={rowHeight}
            height={`min(${SEEN}, ${tasks.items.length * rowHeight + FRAME_PX}px)`}
            label="Tasks, newest first"
            keyOf={({ id }) => id}
            more={tasks.more}
          >
            {(row) => <TaskRowView row={row} wantTitle={tasks.wantTitle} />}
          </Rows>
        </div>
      )}
      {tasks.items.length === 0 && tasks.isLoading && <Loading />}
      {tasks.items.length === 0 && !tasks.isLoading && !tasks.problem && (
        <Nothing isFiltered={isFiltered} known={known} toNew={mayRun ? toNew : null} />
      )}
      {mayRun && query.new !== undefined && (
        <NewTask
          known={known}
          agent={query.new}
          from={query.from ?? null}
          continues={query.continue ?? null}
          close={() => route(here, true)}
          dispatched={(id) => route(`/console/tasks/${id}`)}
        />
      )}
    </Page>
  );
}

function Filters({
  filter,
  known: { agents },
  change,
}: {
  readonly filter: TaskListFilter;
  readonly known: AgentList;
  readonly change: (changed: Partial<TaskListFilter>) => void;
}): JSX.Element {
  const names = (agents ?? []).map(({ name }) => name);
  // Archived agents still have tasks, and an address may name one.
  if (filter.agent !== "" && !names.includes(filter.agent)) names.unshift(filter.agent);
  return (
    <div class="filters task-filters">
      {(agents !== null || names.length > 0) && (
        <Select
          label="Agent"
          value={filter.agent}
          options={[["", "Any"], ...names.map((name) => [name, name] as const)]}
          change={(agent) => change({ agent })}
        />
      )}
      <Select
        label="Status"
        value={filter.status}
        options={[["", "Any"], ...STATUSES.map((status) => [status, status.replaceAll("_", " ")] as const)]}
        change={(chosen) => change({ status: STATUSES.find((status) => status === chosen) ?? "" })}
      />
    </div>
  );
}

function Nothing({
  isFiltered,
  known: { agents },
  toNew,
}: {
  readonly isFiltered: boolean;
  readonly known: AgentList;
  readonly toNew: string | null;
}): JSX.Element {
  const { can } = useSession();
  if (isFiltered) {
    return (
      <Empty
        title="No task matches"
        action={
          <a class="button" href="/console/tasks">
            Show all tasks
          </a>
        }
      >
        There may be tasks of other agents or with another status.
      </Empty>
    );
  }
  if (agents?.length === 0) {
    return (
      <Empty
        title="Create an agent first"
        action={
          can("agents:write") && (
            <a class="button button-main" href="/console/agents/-/new">
              Create an agent
            </a>
          )
        }
      >
        A task is given to an agent, which determines the models it may use, the documents it may read, and
        the tools they may call. {!can("agents:write") && "Ask somebody who has the scope agents:write."}
      </Empty>
    );
  }
  return (
    <Empty
      title="No tasks have run yet"
      action={
        toNew !== null && (
          <a class="button button-main" href={toNew}>
            Run the first task
          </a>
        )
      }
    >
      Give an agent a task and watch it here: what it writes, which tools it calls, and what that costs.
    </Empty>
  );
}

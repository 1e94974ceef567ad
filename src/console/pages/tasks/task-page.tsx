import type { JSX } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import type { Task, TaskStatus } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Page } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { shortId } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";
import { ActivityCard } from "./activity-view.tsx";
import { askedText } from "./asked.ts";
import { AskedCard } from "./asked-card.tsx";
import { isFinal } from "./final.ts";
import { MayNotRead } from "./may-not-read.tsx";
import { titleOf } from "./rows.ts";
import { TaskActions } from "./task-actions.tsx";
import { TaskErrorNote } from "./task-error.tsx";
import { TaskFacts } from "./task-facts.tsx";
import { LedgerTimeline, ToolTimeline } from "./timeline.tsx";

const TITLE_LENGTH = 90;

export function TaskPage(): JSX.Element {
  const { params } = useRoute();
  const { can } = useSession();
  const id = params.id ?? "";
  if (!can("tasks:read")) return <MayNotRead title={`Task ${shortId(id)}`} />;
  return <OneTask key={id} id={id} />;
}

/** A task: its prompt, activity, output and evidence. */
function OneTask({ id }: { readonly id: string }): JSX.Element {
  const { can, feed } = useSession();
  const loaded = useData("GET /v1/tasks/:id", { params: { id } });
  const { data: task, change, reload } = loaded;
  const [round, setRound] = useState(0);

  useEffect(
    () =>
      feed.listen("task.changed", (told) => {
        if (told.id === id) change((before) => withChange(before, told));
      }),
    [feed, id, change],
  );
  const finished = useCallback((ended: Task) => change(() => ended), [change]);
  const readAnew = useCallback(() => {
    reload();
    setRound((before) => before + 1);
  }, [reload]);

  if (!task) {
    return (
      <Page title={`Task ${shortId(id)}`}>
        <ProblemNote problem={loaded.problem} retry={reload} />
        {!loaded.problem && <Loading />}
      </Page>
    );
  }
  return (
    <Page
      title={headingOf(task)}
      lead={
        <span class="row">
          <span aria-live="polite">
            <Status status={task.status} />
          </span>
          <a href="/console/tasks">All tasks</a>
        </span>
      }
      actions={<TaskActions task={task} changed={(now) => change(() => now)} readAnew={readAnew} />}
    >
      <ProblemNote problem={loaded.problem} retry={reload} />
      <TaskErrorNote task={task} />
      <div class="task-columns-page">
        <div class="stack">
          <AskedCard task={task} />
          <ActivityCard key={round} task={task} round={round} finished={finished} />
          {can("ledger:read") ? <LedgerTimeline task={task} round={round} /> : <ToolTimeline task={task} />}
        </div>
        <TaskFacts task={task} />
      </div>
    </Page>
  );
}

function headingOf(task: Task): string {
  const { id } = task;
  const title = titleOf(askedText(task));
  if (title === null || title === "") return `Task ${shortId(id)}`;
  return title.length > TITLE_LENGTH ? `${title.slice(0, TITLE_LENGTH)} …` : title;
}

type TaskSummary = Pick<Task, "credits_consumed" | "model" | "started_at" | "finished_at"> & {
  readonly status: string;
  readonly steps: number;
};

/** Applies an event to a task that has not ended. */
function withChange(task: Task, told: TaskSummary): Task {
  if (isFinal(task.status)) return task;
  return {
    ...task,
    status: told.status as TaskStatus,
    model: told.model,
    credits_consumed: told.credits_consumed,
    usage: { ...task.usage, steps: told.steps },
    started_at: told.started_at,
    finished_at: told.finished_at,
  };
}

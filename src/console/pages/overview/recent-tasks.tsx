import type { JSX } from "preact";
import type { List, Task } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { Show } from "../../parts/problem.tsx";
import { creditsText, Lasting, shortId, Time } from "../../parts/text.tsx";
import type { Loaded } from "../../state/use-data.ts";
import { askedText } from "../tasks/asked.ts";

/** The newest tasks, updated live. */
export function RecentTasks({ tasks }: { readonly tasks: Loaded<List<Task>> }): JSX.Element {
  return (
    <Card title="Recent tasks" actions={<a href="/console/tasks">All tasks</a>}>
      <Show of={tasks}>
        {({ data }) => (
          <ul class="recent">
            {data.map((task) => (
              <Row key={task.id} task={task} />
            ))}
          </ul>
        )}
      </Show>
    </Card>
  );
}

function Row({ task }: { readonly task: Task }): JSX.Element {
  const words = askedText(task)?.trim().split("\n", 1)[0] ?? "";
  return (
    <li>
      <Status status={task.status} />
      <a class="recent-what cut" href={`/console/tasks/${task.id}`} title={task.id}>
        {words === "" ? shortId(task.id) : words}
      </a>
      <span class="recent-agent cut" title={task.agent}>
        <span class="unseen">Agent: </span>
        {task.agent}
      </span>
      <span class="recent-model cut muted" title={task.model ?? undefined}>
        <span class="unseen">Model: </span>
        {task.model ?? "–"}
      </span>
      <span class="recent-credits number">
        {creditsText(task.credits_consumed)}
        <span class="muted"> credits</span>
      </span>
      <span class="recent-took">
        <span class="unseen">Duration: </span>
        <Lasting from={task.started_at} to={task.finished_at} />
      </span>
      <span class="recent-when muted">
        <span class="unseen">Begun: </span>
        <Time at={task.created_at} />
      </span>
    </li>
  );
}

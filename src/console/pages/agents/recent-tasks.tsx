import type { JSX } from "preact";
import type { Task } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { Show } from "../../parts/problem.tsx";
import { Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { askedText } from "../tasks/asked.ts";
import { useRecentTasks } from "./use-recent-tasks.ts";

/** The agent's latest tasks, updated live. */
export function RecentTasks({ agent }: { readonly agent: string }): JSX.Element {
  const { can } = useSession();
  const isReadable = can("tasks:read");
  const tasks = useRecentTasks(agent, isReadable);
  return (
    <Card
      title="Recent tasks"
      actions={isReadable && <a href={`/console/tasks?agent=${agent}`}>All its tasks</a>}
    >
      {isReadable ? (
        <Show of={tasks}>
          {({ data }) =>
            data.length === 0 ? (
              <p class="muted">No tasks yet. Run one, or give a client a token that acts as this agent.</p>
            ) : (
              <ul class="task-rows">
                {data.map((task) => (
                  <TaskRow key={task.id} task={task} />
                ))}
              </ul>
            )
          }
        </Show>
      ) : (
        <p class="muted">
          To see its tasks, you need the scope <code>tasks:read</code>.
        </p>
      )}
    </Card>
  );
}

function TaskRow({ task }: { readonly task: Task }): JSX.Element {
  const prompt = (askedText(task) ?? "").trim();
  return (
    <li>
      <a class="cut" href={`/console/tasks/${task.id}`}>
        {prompt === "" ? task.id : prompt.slice(0, 200)}
      </a>
      <Status status={task.status} />
      <Time at={task.created_at} />
    </li>
  );
}

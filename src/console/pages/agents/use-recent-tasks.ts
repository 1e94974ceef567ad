import { useEffect, useRef } from "preact/hooks";
import type { List, Task } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";
import { type Loaded, useData } from "../../state/use-data.ts";
import { useSoon } from "../../state/use-soon.ts";

const SHOWN = 10;
/** What a busy agent begins is read so often at most: each reading is an entry in the ledger. */
const SHORTEST_MS = 10_000;

/** An agent's newest tasks. What the feed tells of them needs no reading; a task that has come does. */
export function useRecentTasks(agent: string, isReadable: boolean): Loaded<List<Task>> {
  const { feed } = useSession();
  const loaded = useData("GET /v1/tasks", isReadable ? { query: { agent, limit: SHOWN } } : null);
  const { data, change, reload } = loaded;
  const known = useRef(data);
  known.current = data;
  const soon = useSoon(reload, SHORTEST_MS);
  useEffect(
    () =>
      feed.listen("task.changed", (told) => {
        if (told.agent !== agent) return;
        const tasks = known.current?.data ?? [];
        if (tasks.some(({ id }) => id === told.id)) {
          change((list) => ({ ...list, data: list.data.map((task) => asTold(task, told)) }));
          return;
        }
        // An older one than all that are shown changes nothing here.
        const oldest = tasks.at(-1);
        if (tasks.length < SHOWN || oldest === undefined || told.created_at > oldest.created_at) soon();
      }),
    [feed, agent, change, soon],
  );
  return loaded;
}

function asTold(
  task: Task,
  told: Pick<Task, "id" | "model" | "credits_consumed" | "started_at" | "finished_at"> & {
    readonly status: string;
  },
): Task {
  if (task.id !== told.id) return task;
  const { model, credits_consumed, started_at, finished_at } = told;
  return { ...task, status: told.status as Task["status"], model, credits_consumed, started_at, finished_at };
}

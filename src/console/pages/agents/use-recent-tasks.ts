import { useEffect, useRef } from "preact/hooks";
import type { List, Task } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";
import { type Loaded, useData } from "../../state/use-data.ts";
import { useSoon } from "../../state/use-soon.ts";

const SHOWN = 10;
/** The shortest time between two reads for a busy agent: each read is a ledger entry. */
const SHORTEST_MS = 10_000;

/** An agent's newest tasks. Events update the ones shown; a new task causes a read. */
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
        // Ignore tasks older than those shown.
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

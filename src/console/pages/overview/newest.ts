import type { FeedEvents, Task } from "../../../http/api.ts";

/** How many tasks are shown. */
export const NEWEST = 10;

/** Applies an event to the list. A new task comes first, with only the fields that the event has. */
export function merged(tasks: readonly Task[], told: FeedEvents["task.changed"]): readonly Task[] {
  const { id, agent, tier, model, credits_consumed, created_by, created_at, started_at, finished_at } = told;
  const fields = {
    id,
    agent,
    tier,
    model,
    credits_consumed,
    created_by,
    created_at,
    started_at,
    finished_at,
  };
  const now = { ...fields, status: told.status as Task["status"] };
  if (tasks.some((task) => task.id === id)) {
    return tasks.map((task) => (task.id === id ? { ...task, ...now } : task));
  }
  const oldest = tasks.at(-1);
  if (tasks.length >= NEWEST && oldest !== undefined && created_at < oldest.created_at) return tasks;
  const usage = { input_tokens: 0, output_tokens: 0, steps: told.steps };
  const unread = {
    prompt: null,
    tools: [],
    output: null,
    tools_called: [],
    usage,
    error: null,
    metadata: {},
  };
  return [{ ...unread, ...now }, ...tasks]
    .sort((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, NEWEST);
}

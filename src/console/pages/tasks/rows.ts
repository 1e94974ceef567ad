import type { FeedEvents, Task, TaskStatus } from "../../../http/api.ts";
import { askedText } from "./asked.ts";

type Change = FeedEvents["task.changed"];

/** A task in the list, without its text: the text of ten thousand tasks may amount to gigabytes. */
export interface TaskListRow extends Change {
  /** The prompt's first line; null if erased; undefined if unread, because only the feed has reported the task. */
  readonly title: string | null | undefined;
}

/** Filters of the list; empty: unfiltered. */
export interface TaskListFilter {
  readonly agent: string;
  readonly status: TaskStatus | "";
}

const TITLE_LENGTH = 200;

/** The first non-empty line of a prompt, shortened to fit a row. */
export function titleOf(prompt: string | null): string | null {
  if (prompt === null) return null;
  const line = /\S[^\r\n]*/.exec(prompt)?.[0].trimEnd() ?? "";
  return line.length > TITLE_LENGTH ? `${line.slice(0, TITLE_LENGTH)} …` : line;
}

export function rowOf(task: Task): TaskListRow {
  return {
    id: task.id,
    agent: task.agent,
    tier: task.tier,
    status: task.status,
    model: task.model,
    credits_consumed: task.credits_consumed,
    steps: task.usage.steps,
    error: task.error && { code: task.error.code },
    created_by: task.created_by,
    created_at: task.created_at,
    started_at: task.started_at,
    finished_at: task.finished_at,
    title: titleOf(askedText(task)),
  };
}

/**
 * Merges events into the rows, newest first: tasks are updated in place, removed if they no longer match the filter,
 * and inserted where they belong. `isWhole`: no later page contains older tasks.
 */
export function merge(
  rows: readonly TaskListRow[],
  changes: ReadonlyMap<string, Change>,
  filter: TaskListFilter,
  isWhole: boolean,
): readonly TaskListRow[] {
  const left = new Map(changes);
  const kept: TaskListRow[] = [];
  for (const row of rows) {
    const change = left.get(row.id);
    left.delete(row.id);
    if (change === undefined) kept.push(row);
    else if (matches(change, filter)) kept.push({ ...change, title: row.title });
  }
  const last = rows.at(-1)?.id;
  const added = [...left.values()].filter(
    (change) => matches(change, filter) && (isWhole || last === undefined || change.id > last),
  );
  if (added.length === 0) return kept;
  return [...kept, ...added.map((change) => ({ ...change, title: undefined }))].sort(newestFirst);
}

/** Ids sort by creation time. */
function newestFirst(one: TaskListRow, other: TaskListRow): number {
  return one.id < other.id ? 1 : one.id > other.id ? -1 : 0;
}

function matches(change: Change, { agent, status }: TaskListFilter): boolean {
  return (agent === "" || change.agent === agent) && (status === "" || change.status === status);
}

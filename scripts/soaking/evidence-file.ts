import { Database } from "bun:sqlite";
import { type Entry, readFile, unsettled } from "../../test/faults/support.ts";

export interface TimedEntry extends Entry {
  /** RFC 3339, in milliseconds. */
  readonly ts: string;
  readonly request_id?: string;
  readonly oversight?: { readonly decided_at?: string };
}

export interface TaskRow {
  readonly id: string;
  readonly status: string;
  /** Starts in the step that it had reached, except those that ended in an orderly way. */
  readonly attempts: number;
  /** In millionths. */
  readonly credits: number;
  /** The seq of the intent of the model call in flight. */
  readonly open_model_call: number | null;
}

export interface ToolCallRow {
  readonly task_id: string;
  readonly id: string;
  readonly outcome_seq: number | null;
}

/** Reads the database file of a server that has ended, with the data that only a soak needs. */
export function readEvidenceFile(path: string) {
  const file = readFile(path);
  const database = new Database(path, { readonly: true });
  const tasks = database
    .query<TaskRow, []>("SELECT id, status, attempts, credits, open_model_call FROM tasks")
    .all();
  const toolCalls = database.query<ToolCallRow, []>("SELECT task_id, id, outcome_seq FROM tool_calls").all();
  database.close();
  const entries = file.rows.map(({ bytes }) => JSON.parse(bytes) as TimedEntry);
  return { ...file, tasks, toolCalls, entries };
}

/** What an orderly end leaves in the file. */
export interface OrderlyEnd {
  /** Tasks that had been started and are waiting for the next process. */
  readonly givenBack: number;
  /** What should not be left: tasks still marked as running, and calls without an outcome. */
  readonly faults: readonly string[];
}

export function readOrderlyEnd(path: string): OrderlyEnd {
  const { tasks, entries } = readFile(path);
  const running = tasks.filter(({ status }) => status === "running");
  const open = unsettled(entries.filter(({ action }) => action !== "task.dispatch"));
  const started = new Set(entries.filter(isCall).map(({ task }) => task));
  return {
    givenBack: tasks.filter(({ id, status }) => status === "queued" && started.has(id)).length,
    faults: [...running.map(({ id }) => `${id} is running, and nobody runs it`), ...open],
  };
}

export function isCall({ action }: Entry): boolean {
  return action === "model.call" || action === "tool.call";
}

import type { Migration } from "../migrate.ts";

/**
 * `input_form`: how the payload of a task's dispatch is to be read. Null: it is the prompt. `json`: a JSON object with
 * the prompt or messages, and the schema of the output.
 *
 * `continues`: the task whose conversation a task continues. The index finds the tasks that may quote an erased one.
 */
export const TASK_MESSAGES: Migration = {
  name: "tasks with messages, output schemas and predecessors",
  sql: `
ALTER TABLE tasks ADD COLUMN input_form TEXT;
ALTER TABLE tasks ADD COLUMN continues TEXT;
CREATE INDEX tasks_continuing ON tasks (workspace_id, continues, id) WHERE continues IS NOT NULL;
`,
};

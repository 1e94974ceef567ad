import type { Migration } from "../migrate.ts";

/**
 * What a task resumes from after a crash: each answer of a model (`body` is the assistant's message as JSON), kept
 * until the task ends, and the ledger entry that contains the result of each tool call. Null: there is none, or the
 * task was created by an older version.
 */
export const DURABLE_TASKS: Migration = {
  name: "tasks continue from their last saved step",
  sql: `
CREATE TABLE task_answers (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (workspace_id, task_id, step),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT, WITHOUT ROWID;

ALTER TABLE tool_calls ADD COLUMN outcome_seq INTEGER;
`,
};

import type { Migration } from "../migrate.ts";

/**
 * Tables with long text become tables with a rowid, and the text becomes their last column.
 *
 * The key of a table WITHOUT ROWID is part of its rows. A search compares whole rows, so it reads all the long text
 * on its way, whichever workspace the text belongs to. Finding the length of one of 60 texts of 6 MB took 13.7 ms,
 * and takes 0.01 ms with a rowid. With a rowid, the key has an index without the text. SQLite reads a row from its
 * beginning, so reading a column before the text costs nothing more, while reading a column after it would mean
 * reading the text.
 *
 * The rows that become long:
 *
 * - `payloads.body`: requests and answers of more than 10 MiB, searched each time a task or call is read.
 * - `tasks.metadata` and `tools`: up to 70 KB.
 * - `task_answers.body`: a model's answer with the arguments of its calls.
 * - `task_events.frames`: blocks of 64 KiB, or one event as long as its tool's result.
 * - `schedules.prompt`: a million characters.
 * - `usage_slots.facts`: about 40 KB with the most tools that a slot can name.
 * - `meta.value`: notes with the ids of a workspace's revoked tokens, open tasks and calls, or of the tasks that
 *   quote a document.
 *
 * The other tables WITHOUT ROWID have short rows: numbers, ids, names and hashes (test/store/long-texts.test.ts lists
 * them). `tool_calls` refers to `tasks`, so it is created again as it was. `ledger.bytes` is mostly below 1,000 bytes
 * and at most some 20 KB, and its rows are found by numbers that only grow.
 */
export const LONG_TEXTS: Migration = {
  name: "long texts outside of the trees that are searched",
  sql: `
ALTER TABLE payloads RENAME TO earlier_payloads;
CREATE TABLE payloads (
  workspace_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  salt BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (workspace_id, seq, kind)
) STRICT;
INSERT INTO payloads (workspace_id, seq, kind, salt, created_at, body)
  SELECT workspace_id, seq, kind, salt, created_at, body FROM earlier_payloads ORDER BY workspace_id, seq, kind;
DROP TABLE earlier_payloads;

ALTER TABLE tasks RENAME TO earlier_tasks;
CREATE TABLE tasks (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  agent_id INTEGER NOT NULL REFERENCES agents (id),
  agent TEXT NOT NULL,
  tier INTEGER NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  model TEXT,
  credits INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  error_code TEXT,
  dispatch_seq INTEGER NOT NULL,
  finish_seq INTEGER,
  open_model_call INTEGER,
  open_reserved INTEGER NOT NULL DEFAULT 0,
  event_ceiling INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  input_form TEXT,
  continues TEXT,
  seal BLOB,
  error_message TEXT,
  tools TEXT NOT NULL,
  metadata TEXT NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT;
INSERT INTO tasks (workspace_id, id, agent_id, agent, tier, status, attempts, model, credits, input_tokens, output_tokens,
    steps, error_code, dispatch_seq, finish_seq, open_model_call, open_reserved, event_ceiling, created_by, created_at,
    started_at, finished_at, input_form, continues, seal, error_message, tools, metadata)
  SELECT workspace_id, id, agent_id, agent, tier, status, attempts, model, credits, input_tokens, output_tokens,
    steps, error_code, dispatch_seq, finish_seq, open_model_call, open_reserved, event_ceiling, created_by, created_at,
    started_at, finished_at, input_form, continues, seal, error_message, tools, metadata
  FROM earlier_tasks ORDER BY workspace_id, id;

ALTER TABLE tool_calls RENAME TO earlier_tool_calls;
CREATE TABLE tool_calls (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  id TEXT NOT NULL,
  tool TEXT NOT NULL,
  status TEXT NOT NULL,
  intent_seq INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration_ms INTEGER,
  outcome_seq INTEGER,
  price INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, task_id, position),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO tool_calls (workspace_id, task_id, position, id, tool, status, intent_seq, started_at, duration_ms,
    outcome_seq, price)
  SELECT workspace_id, task_id, position, id, tool, status, intent_seq, started_at, duration_ms, outcome_seq, price
  FROM earlier_tool_calls ORDER BY workspace_id, task_id, position;
DROP TABLE earlier_tool_calls;

ALTER TABLE task_answers RENAME TO earlier_task_answers;
CREATE TABLE task_answers (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  seal BLOB,
  body TEXT NOT NULL,
  PRIMARY KEY (workspace_id, task_id, step),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT;
INSERT INTO task_answers (workspace_id, task_id, step, seal, body)
  SELECT workspace_id, task_id, step, seal, body FROM earlier_task_answers ORDER BY workspace_id, task_id, step;
DROP TABLE earlier_task_answers;

ALTER TABLE task_events RENAME TO earlier_task_events;
CREATE TABLE task_events (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  frames BLOB NOT NULL,
  PRIMARY KEY (workspace_id, task_id, first_id),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT;
INSERT INTO task_events (workspace_id, task_id, first_id, last_id, frames)
  SELECT workspace_id, task_id, first_id, last_id, frames FROM earlier_task_events
  ORDER BY workspace_id, task_id, first_id;
DROP TABLE earlier_task_events;

DROP TABLE earlier_tasks;
CREATE INDEX tasks_by_agent ON tasks (workspace_id, agent_id, id);
CREATE INDEX tasks_open ON tasks (workspace_id, id, status, agent_id, finished_at) WHERE finished_at IS NULL;
CREATE INDEX tasks_ended ON tasks (workspace_id, status, id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_ended_by_agent ON tasks (workspace_id, agent_id, status, id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_continuing ON tasks (workspace_id, continues, id) WHERE continues IS NOT NULL;

ALTER TABLE schedules RENAME TO earlier_schedules;
CREATE TABLE schedules (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  agent TEXT NOT NULL,
  agent_id INTEGER,
  cron TEXT NOT NULL,
  timezone TEXT NOT NULL,
  tier INTEGER,
  missed TEXT NOT NULL,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  runs_as TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  next_at INTEGER,
  last_at INTEGER,
  last_task TEXT,
  last_code TEXT,
  seal BLOB,
  tools TEXT NOT NULL,
  metadata TEXT NOT NULL,
  prompt TEXT NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT;
INSERT INTO schedules (workspace_id, id, name, agent, agent_id, cron, timezone, tier, missed, status, version, created_by,
    runs_as, created_at, updated_at, next_at, last_at, last_task, last_code, seal, tools, metadata, prompt)
  SELECT workspace_id, id, name, agent, agent_id, cron, timezone, tier, missed, status, version, created_by,
    runs_as, created_at, updated_at, next_at, last_at, last_task, last_code, seal, tools, metadata, prompt
  FROM earlier_schedules ORDER BY workspace_id, id;
DROP TABLE earlier_schedules;
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

ALTER TABLE usage_slots RENAME TO earlier_usage_slots;
CREATE TABLE usage_slots (
  workspace_id INTEGER NOT NULL,
  width INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (workspace_id, width, agent_id, slot)
) STRICT;
INSERT INTO usage_slots (workspace_id, width, agent_id, slot, credits, facts)
  SELECT workspace_id, width, agent_id, slot, credits, facts FROM earlier_usage_slots
  ORDER BY workspace_id, width, agent_id, slot;
DROP TABLE earlier_usage_slots;
CREATE INDEX usage_slots_credits ON usage_slots (workspace_id, width, agent_id, slot, credits);

ALTER TABLE meta RENAME TO earlier_meta;
CREATE TABLE meta (
  key TEXT NOT NULL PRIMARY KEY,
  seal BLOB,
  value TEXT NOT NULL
) STRICT;
INSERT INTO meta (key, seal, value) SELECT key, seal, value FROM earlier_meta ORDER BY key;
DROP TABLE earlier_meta;
`,
};

import type { Migration } from "../migrate.ts";

/**
 * Tables with long texts become tables with a rowid, and the text becomes their last column.
 *
 * The key of a table WITHOUT ROWID is part of its rows. A search compares whole rows, so it reads every long text on
 * its way, whoever it belongs to: the length of one of 60 texts of 6 MB took 13.7 ms to find, and 0.01 ms with a rowid. With
 * a rowid, the key has an index without texts. SQLite reads a row from its beginning, so the columns before a text
 * cost nothing, and those after it would cost reading the text.
 *
 * The rows that become long, and by what they are found:
 *
 * - `payloads.body`: requests and answers of more than 10 MiB, found with each read of a task or call.
 * - `task_answers.body`: a model's answer with the arguments of its calls.
 * - `task_events.frames`: blocks of 64 KiB, or one event as long as its tool's result.
 * - `schedules.prompt`: a million characters.
 * - `usage_slots.facts`: about 40 KB with all tools that a slot names.
 * - `meta.value`: notes with the ids of a workspace's revoked tokens, open tasks and calls, or of the tasks that quote a document.
 *
 * The other tables WITHOUT ROWID have short rows: numbers, ids, names and hashes (test/store/long-texts.test.ts lists
 * them). `ledger.bytes` is mostly below 1,000 bytes and at most some 20 KB, and a ledger is found by numbers that only grow.
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

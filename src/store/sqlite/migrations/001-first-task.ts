import type { Migration } from "../migrate.ts";

/**
 * Workspaces, tokens, agents, tasks with their events, payloads and the ledger.
 *
 * The ledger's guard calls no SQL functions, since a caller could override them. It names the table `main.ledger`,
 * since a temporary table could hide it. There is no secondary UNIQUE column, since REPLACE on one would delete rows.
 *
 * The partial indexes of tasks contain every column of the queries that list them. Without ANALYZE's statistics,
 * SQLite prefers the primary key to an index that requires looking up the row, and would read a workspace's whole
 * history.
 */
export const FIRST_TASK: Migration = {
  name: "workspaces, tokens, agents, tasks, ledger",
  sql: `
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES ('ready', '');

CREATE TABLE workspaces (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  requests_per_minute INTEGER,
  concurrent_tasks INTEGER,
  enforcement TEXT,
  credits_per_month INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE agents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  description TEXT,
  instructions TEXT,
  memory_scope TEXT NOT NULL,
  tier_policy TEXT NOT NULL,
  tools TEXT NOT NULL,
  approvals TEXT,
  max_steps INTEGER NOT NULL,
  credits_per_day INTEGER,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  archived_at INTEGER
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (workspace_id, name) WHERE archived_at IS NULL;
CREATE INDEX agents_ever_named ON agents (workspace_id, name);

CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  agent_id INTEGER REFERENCES agents (id),
  scopes TEXT NOT NULL,
  person TEXT,
  role TEXT,
  secret_hash BLOB NOT NULL,
  previous_hash BLOB,
  previous_until INTEGER,
  expires_at INTEGER,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_secret ON tokens (secret_hash);
CREATE INDEX tokens_by_previous ON tokens (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX tokens_by_workspace ON tokens (workspace_id, id);

CREATE TABLE tasks (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  agent_id INTEGER NOT NULL REFERENCES agents (id),
  agent TEXT NOT NULL,
  tier INTEGER NOT NULL,
  tools TEXT NOT NULL,
  metadata TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  model TEXT,
  credits INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  error_code TEXT,
  error_message TEXT,
  dispatch_seq INTEGER NOT NULL,
  finish_seq INTEGER,
  open_model_call INTEGER,
  event_ceiling INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_agent ON tasks (workspace_id, agent_id, id);
CREATE INDEX tasks_open ON tasks (workspace_id, id, status, agent_id, finished_at) WHERE finished_at IS NULL;
CREATE INDEX tasks_ended ON tasks (workspace_id, status, id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_ended_by_agent ON tasks (workspace_id, agent_id, status, id, finished_at) WHERE finished_at IS NOT NULL;

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
  PRIMARY KEY (workspace_id, task_id, position),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_events (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  frames BLOB NOT NULL,
  PRIMARY KEY (workspace_id, task_id, first_id),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
  workspace_id INTEGER NOT NULL,
  actor TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  task_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, actor, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE spending (
  workspace_id INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  day TEXT NOT NULL,
  credits INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, day, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE payloads (
  workspace_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  salt BLOB NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, seq, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  seq INTEGER NOT NULL,
  prev BLOB NOT NULL,
  leaf BLOB NOT NULL,
  bytes TEXT NOT NULL,
  PRIMARY KEY (workspace_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER ledger_in_order BEFORE INSERT ON ledger BEGIN
  SELECT RAISE (ABORT, 'ledger: an entry must follow the last one')
  WHERE NOT EXISTS (
    SELECT 1 FROM (
      SELECT seq, leaf FROM main.ledger WHERE workspace_id = NEW.workspace_id ORDER BY seq DESC LIMIT 1
    ) AS last
    WHERE last.seq + 1 = NEW.seq AND last.leaf = NEW.prev
  ) AND NOT (
    NEW.seq = 1
    AND NEW.prev = x'0000000000000000000000000000000000000000000000000000000000000000'
    AND NOT EXISTS (SELECT 1 FROM main.ledger WHERE workspace_id = NEW.workspace_id)
  );
END;
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN
  SELECT RAISE (ABORT, 'ledger: entries are never changed');
END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN
  SELECT RAISE (ABORT, 'ledger: entries are never deleted');
END;
`,
};

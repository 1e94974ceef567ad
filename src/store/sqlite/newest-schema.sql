-- What all migrations create, and the rows that they leave, for a new database. Made by scripts/lib/newest-schema.ts.
CREATE TABLE workspaces (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  requests_per_minute INTEGER,
  concurrent_tasks INTEGER,
  enforcement TEXT,
  credits_per_month INTEGER,
  created_at INTEGER NOT NULL
, status TEXT NOT NULL DEFAULT 'active', seal BLOB) STRICT;
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
, approvals_required INTEGER NOT NULL DEFAULT 1, seal BLOB) STRICT;
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
, tools_mode TEXT NOT NULL DEFAULT 'all', rotations INTEGER NOT NULL DEFAULT 0, seal BLOB) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_secret ON tokens (secret_hash);
CREATE INDEX tokens_by_previous ON tokens (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX tokens_by_workspace ON tokens (workspace_id, id);
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
CREATE TABLE vault_scopes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  path TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX vault_scopes_by_path ON vault_scopes (workspace_id, path);
CREATE TABLE vault_documents (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  scope_id INTEGER NOT NULL REFERENCES vault_scopes (id),
  state TEXT NOT NULL,
  title TEXT NOT NULL,
  source_uri TEXT,
  source_hash BLOB,
  metadata TEXT NOT NULL,
  content_type TEXT NOT NULL,
  content_hash BLOB NOT NULL,
  characters INTEGER NOT NULL,
  chunks INTEGER NOT NULL,
  pages INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX vault_documents_by_id ON vault_documents (workspace_id, id) WHERE state = 'live';
CREATE INDEX vault_documents_by_scope ON vault_documents (scope_id, state, id);
CREATE INDEX vault_documents_by_source ON vault_documents (scope_id, source_hash, id)
  WHERE state = 'live' AND source_hash IS NOT NULL;
CREATE INDEX vault_documents_unfinished ON vault_documents (key) WHERE state <> 'live';
CREATE TABLE vault_pages (
  key INTEGER PRIMARY KEY,
  "start" INTEGER NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE TABLE vault_chunks (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  "start" INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE INDEX vault_chunks_by_hash ON vault_chunks (hash);
CREATE TABLE vault_metadata (
  scope_id INTEGER NOT NULL REFERENCES vault_scopes (id),
  hash BLOB NOT NULL,
  document_key INTEGER NOT NULL REFERENCES vault_documents (key),
  PRIMARY KEY (scope_id, hash, document_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX vault_metadata_by_document ON vault_metadata (document_key);
CREATE TABLE vault_segments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope_id INTEGER NOT NULL REFERENCES vault_scopes (id),
  document_key INTEGER,
  live INTEGER NOT NULL,
  chunks INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;
CREATE INDEX vault_segments_by_scope ON vault_segments (scope_id, live, id);
CREATE INDEX vault_segments_building ON vault_segments (document_key) WHERE live = 0;
CREATE TABLE vault_spaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  dimensions INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE vault_pending (
  space_id INTEGER NOT NULL REFERENCES vault_spaces (id),
  chunk_key INTEGER NOT NULL,
  retry_at INTEGER NOT NULL,
  PRIMARY KEY (space_id, chunk_key)
) STRICT, WITHOUT ROWID;
CREATE TABLE connectors (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  definition BLOB NOT NULL,
  scopes TEXT NOT NULL,
  status TEXT NOT NULL,
  error TEXT,
  tools TEXT NOT NULL,
  authorised_by TEXT NOT NULL,
  authorised_at INTEGER NOT NULL
, seal BLOB) STRICT;
CREATE UNIQUE INDEX connectors_by_name ON connectors (workspace_id, name);
CREATE TABLE ledger_tiles (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  level INTEGER NOT NULL,
  tile INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (workspace_id, level, tile)
) STRICT;
CREATE TABLE ledger_index (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  key TEXT NOT NULL,
  block INTEGER NOT NULL,
  bits BLOB NOT NULL,
  PRIMARY KEY (workspace_id, key, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_checkpoints (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  size INTEGER NOT NULL,
  note TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, size)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER ledger_checkpoints_in_order BEFORE INSERT ON ledger_checkpoints BEGIN
  SELECT RAISE (ABORT, 'ledger: a checkpoint must follow the last one')
  WHERE EXISTS (
    SELECT 1 FROM main.ledger_checkpoints WHERE workspace_id = NEW.workspace_id AND size >= NEW.size
  );
END;
CREATE TRIGGER ledger_checkpoints_no_update BEFORE UPDATE ON ledger_checkpoints BEGIN
  SELECT RAISE (ABORT, 'ledger: checkpoints are never changed');
END;
CREATE TRIGGER ledger_checkpoints_no_delete BEFORE DELETE ON ledger_checkpoints BEGIN
  SELECT RAISE (ABORT, 'ledger: checkpoints are never deleted');
END;
CREATE TABLE ledger_keys (
  id INTEGER PRIMARY KEY,
  public_key BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  retired_at INTEGER
) STRICT;
CREATE TABLE approvals (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  task_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  tool TEXT NOT NULL,
  pending_seq INTEGER NOT NULL,
  arguments_seq INTEGER NOT NULL,
  arguments_hash TEXT NOT NULL,
  required INTEGER NOT NULL,
  presented_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  decision_seq INTEGER, definition_hash TEXT, first_seq INTEGER,
  PRIMARY KEY (workspace_id, task_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_pending ON approvals (workspace_id, pending_seq, task_id, call_id) WHERE status = 'pending';
CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE status = 'pending';
CREATE TABLE approval_votes (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  person TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, task_id, call_id, person)
) STRICT, WITHOUT ROWID;
CREATE TABLE webhook_deliveries (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  attempted_at INTEGER,
  last_status INTEGER,
  last_error TEXT,
  next_at INTEGER, seal BLOB,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_type ON webhook_deliveries (workspace_id, type, status, id);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  token_id TEXT NOT NULL REFERENCES tokens (id),
  secret_hash BLOB NOT NULL,
  user_agent TEXT,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  expires_at INTEGER NOT NULL
, seal BLOB) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_by_secret ON sessions (secret_hash);
CREATE INDEX sessions_by_workspace ON sessions (workspace_id, id);
CREATE INDEX sessions_by_token ON sessions (workspace_id, token_id, id);
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE TABLE usage_counts (
  workspace_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  outcome TEXT NOT NULL,
  bucket INTEGER NOT NULL,
  count INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, slot, agent_id, kind, name, outcome, bucket)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_status ON approvals (workspace_id, status, pending_seq);
CREATE INDEX approvals_by_agent ON approvals (workspace_id, agent, status, pending_seq);
CREATE INDEX approvals_by_tool ON approvals (workspace_id, tool, status, pending_seq);
CREATE INDEX approvals_by_question ON approvals (workspace_id, agent, tool, status, pending_seq);
CREATE INDEX vault_documents_sizes ON vault_documents (scope_id, characters, updated_at) WHERE state = 'live';
CREATE TABLE ledger_heads (
  workspace_id INTEGER PRIMARY KEY REFERENCES workspaces (id),
  note TEXT NOT NULL
) STRICT;
CREATE TABLE ledger_node_heads (
  node INTEGER PRIMARY KEY,
  note TEXT NOT NULL
) STRICT;
CREATE TABLE responses (
  workspace_id INTEGER NOT NULL,
  id TEXT NOT NULL,
  agent_id INTEGER,
  model TEXT NOT NULL,
  native INTEGER NOT NULL,
  request_seq INTEGER NOT NULL,
  outcome_seq INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL, attempts INTEGER,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX responses_request ON responses (workspace_id, request_seq);
CREATE TABLE response_items (
  workspace_id INTEGER NOT NULL,
  id TEXT NOT NULL,
  response_id TEXT NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX response_items_response ON response_items (workspace_id, response_id);
CREATE INDEX responses_open ON responses (workspace_id, request_seq) WHERE outcome_seq = 0;
CREATE INDEX responses_outcome ON responses (workspace_id, outcome_seq);
CREATE TABLE response_events (
  workspace_id INTEGER NOT NULL,
  response_id TEXT NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  frames BLOB NOT NULL,
  PRIMARY KEY (workspace_id, response_id, first_id)
) STRICT;
CREATE TABLE payloads (
  workspace_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  salt BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (workspace_id, seq, kind)
) STRICT;
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
CREATE TABLE task_answers (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  seal BLOB,
  body TEXT NOT NULL,
  PRIMARY KEY (workspace_id, task_id, step),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT;
CREATE TABLE task_events (
  workspace_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  frames BLOB NOT NULL,
  PRIMARY KEY (workspace_id, task_id, first_id),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
) STRICT;
CREATE INDEX tasks_by_agent ON tasks (workspace_id, agent_id, id);
CREATE INDEX tasks_open ON tasks (workspace_id, id, status, agent_id, finished_at) WHERE finished_at IS NULL;
CREATE INDEX tasks_ended ON tasks (workspace_id, status, id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_ended_by_agent ON tasks (workspace_id, agent_id, status, id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_continuing ON tasks (workspace_id, continues, id) WHERE continues IS NOT NULL;
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
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE TABLE usage_slots (
  workspace_id INTEGER NOT NULL,
  width INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (workspace_id, width, agent_id, slot)
) STRICT;
CREATE INDEX usage_slots_credits ON usage_slots (workspace_id, width, agent_id, slot, credits);
CREATE TABLE meta (
  key TEXT NOT NULL PRIMARY KEY,
  seal BLOB,
  value TEXT NOT NULL
) STRICT;
CREATE INDEX tokens_unrevoked ON tokens (workspace_id, revoked_at) WHERE revoked_at IS NULL;
INSERT INTO meta (key, seal, value) VALUES ('ready', NULL, '');

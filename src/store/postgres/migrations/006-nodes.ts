import type { Migration } from "../migrate.ts";

/** What only a store with several nodes needs. */
export const NODES: Migration = {
  name: "the order of nodes",
  sql: `
-- Whoever holds the lock of a row appends to that workspace's ledger.
-- What has been signed of its end is null until the ledger begins.
CREATE TABLE ledger_tails (
  workspace_id BIGINT PRIMARY KEY,
  head TEXT COLLATE "C",
  edge BYTEA
);

-- One row for each of the newest transactions of a node: see commit-marks.ts.
CREATE TABLE commit_marks (
  owner TEXT COLLATE "C" NOT NULL,
  mark BIGINT NOT NULL,
  fenced BOOLEAN NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  PRIMARY KEY (owner, mark)
);
CREATE INDEX commit_marks_by_age ON commit_marks (created_at);

-- Running processes. Times are in milliseconds since the Unix epoch, by this server's clock.
CREATE TABLE nodes (
  id TEXT COLLATE "C" PRIMARY KEY,
  version TEXT COLLATE "C" NOT NULL,
  since BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  tasks BIGINT NOT NULL
);

-- Work that only one node does at a time. A lease ends with its node.
CREATE TABLE node_leases (
  name TEXT COLLATE "C" PRIMARY KEY,
  node_id TEXT COLLATE "C" NOT NULL REFERENCES nodes (id) ON DELETE CASCADE
);
CREATE INDEX node_leases_by_node ON node_leases (node_id);

-- What calls in flight have reserved from budgets: a row for each call and budget, deleted when the call ends. Rows are
-- short-lived, so dead ones are removed early.
CREATE TABLE budget_reservations (
  workspace_id BIGINT NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  budget TEXT COLLATE "C" NOT NULL,
  micros BIGINT NOT NULL,
  node_id TEXT COLLATE "C" NOT NULL,
  lease BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, owner, budget)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX budget_reservations_sum ON budget_reservations (workspace_id, budget) INCLUDE (micros);

-- One row for each workspace: what it has spent in the newest month in which it has spent anything.
CREATE TABLE spending_months (
  workspace_id BIGINT PRIMARY KEY,
  month TEXT COLLATE "C" NOT NULL,
  credits BIGINT NOT NULL
);

-- One token bucket for each workspace, by this server's clock. After a crash of the server all are full, as after a start.
CREATE UNLOGGED TABLE request_buckets (
  workspace_id BIGINT PRIMARY KEY,
  tokens DOUBLE PRECISION NOT NULL,
  updated_at BIGINT NOT NULL,
  granted BIGINT NOT NULL
);

-- One row for each workspace that has exceeded a limit: the minute of its newest notice, and what has not been reported.
CREATE TABLE limit_notices (
  workspace_id BIGINT PRIMARY KEY,
  minute BIGINT NOT NULL,
  named TEXT COLLATE "C" NOT NULL,
  also TEXT COLLATE "C",
  uncounted BIGINT NOT NULL
);

-- Links that sign a browser in once: at most 100. The hash is that of the link's secret.
CREATE TABLE sign_in_links (
  hash BYTEA PRIMARY KEY,
  workspace_id BIGINT NOT NULL,
  token_id TEXT COLLATE "C" NOT NULL,
  secret_hash BYTEA NOT NULL,
  maker TEXT COLLATE "C" NOT NULL,
  maker_seq BIGINT,
  expires_at BIGINT NOT NULL,
  seal BYTEA
);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);
-- Which node makes the calls of each open task and background response. It may be free: its node has no row in "nodes",
-- or is the empty text. A task that is due was queued again by another node than its own.
CREATE TABLE task_claims (
  workspace_id BIGINT NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  node_id TEXT COLLATE "C" NOT NULL,
  is_due BOOLEAN NOT NULL DEFAULT FALSE,
  PRIMARY KEY (workspace_id, task_id)
);
CREATE INDEX task_claims_by_node ON task_claims (node_id, workspace_id, task_id);
CREATE INDEX task_claims_due ON task_claims (node_id) WHERE is_due;

-- Which node makes each tool or model call outside of tasks, from its intent to its outcome.
CREATE TABLE open_calls (
  workspace_id BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  node_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (workspace_id, seq)
);
CREATE INDEX open_calls_by_node ON open_calls (node_id);

-- How many tasks each node may run in a workspace whose limit is enforced, how many it could run, and since when it has
-- waited for more, in milliseconds since the Unix epoch.
CREATE TABLE task_places (
  workspace_id BIGINT NOT NULL,
  node_id TEXT COLLATE "C" NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  taken BIGINT NOT NULL,
  wanted BIGINT NOT NULL,
  waiting_since BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, node_id)
);
CREATE INDEX task_places_by_node ON task_places (node_id);
-- The exact vectors of the vault's passages.
CREATE TABLE vault_vectors (
  space_id BIGINT NOT NULL REFERENCES vault_spaces (id),
  passage BIGINT NOT NULL,
  embedding BYTEA NOT NULL,
  PRIMARY KEY (space_id, passage)
);

-- Rounded copies of a model's vectors, for scanning. Their keys differ from those of all other segments, with which threads cache them.
CREATE TABLE vault_vector_segments (
  id BIGINT PRIMARY KEY DEFAULT nextval('vault_segments_id_seq'),
  space_id BIGINT NOT NULL REFERENCES vault_spaces (id),
  scope_id BIGINT NOT NULL,
  chunks BIGINT NOT NULL,
  data BYTEA NOT NULL
);
CREATE INDEX vault_vector_segments_by_scope ON vault_vector_segments (space_id, scope_id, id);

-- Which node is writing or removing a document that nobody sees. Without a row of that node, others remove it.
CREATE TABLE vault_claims (
  document_key BIGINT PRIMARY KEY REFERENCES vault_documents (key) ON DELETE CASCADE,
  node_id TEXT COLLATE "C" NOT NULL
);
-- Sessions of MCP's Streamable HTTP. Their ids are secrets, so only hashes are stored.
CREATE TABLE mcp_sessions (
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  id_hash TEXT COLLATE "C" NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  told_tools TEXT COLLATE "C" NOT NULL,
  used_at BIGINT NOT NULL,
  had_stream BOOLEAN NOT NULL,
  PRIMARY KEY (workspace_id, id_hash)
);
CREATE INDEX mcp_sessions_by_use ON mcp_sessions (workspace_id, used_at);
CREATE INDEX mcp_sessions_by_age ON mcp_sessions (had_stream, used_at);

-- Streams of MCP that are resumed on another node than the one that has their events. They end with either of them.
CREATE TABLE mcp_replays (
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  id TEXT COLLATE "C" NOT NULL,
  reader TEXT COLLATE "C" NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  sender TEXT COLLATE "C" REFERENCES nodes (id) ON DELETE CASCADE,
  status BIGINT,
  ended BOOLEAN NOT NULL,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX mcp_replays_by_reader ON mcp_replays (reader);
CREATE INDEX mcp_replays_by_sender ON mcp_replays (sender);
CREATE TABLE mcp_replay_parts (
  workspace_id BIGINT NOT NULL,
  replay_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  frames BYTEA NOT NULL,
  PRIMARY KEY (workspace_id, replay_id, seq),
  FOREIGN KEY (workspace_id, replay_id) REFERENCES mcp_replays (workspace_id, id) ON DELETE CASCADE
);
`,
};

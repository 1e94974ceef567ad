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
`,
};

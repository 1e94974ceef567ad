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
`,
};

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
`,
};

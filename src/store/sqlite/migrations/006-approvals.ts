import type { Migration } from "../migrate.ts";

/**
 * Calls that wait, or waited, for a person. `pending_seq` is the entry that shows the call, `arguments_seq` the entry
 * whose payload contains the valid arguments: the same one, or the decision that changed them. `decision_seq` is the
 * entry that settled it. One approval permits one call.
 */
export const APPROVALS: Migration = {
  name: "approvals",
  sql: `
ALTER TABLE agents ADD COLUMN approvals_required INTEGER NOT NULL DEFAULT 1;

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
  decision_seq INTEGER,
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
`,
};

import type { Migration } from "../migrate.ts";

/**
 * Webhook deliveries and their results. `body` is posted byte for byte. `tries` counts the attempts since the
 * delivery was requested (a redelivery starts at zero). `next_at` is set while attempts continue. Also schedules:
 * `next_at` is null if no run is due, and `last_*` describe the last run.
 */
export const NOTIFY: Migration = {
  name: "webhook deliveries and schedules",
  sql: `
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
  next_at INTEGER,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_type ON webhook_deliveries (workspace_id, type, status, id);

CREATE TABLE schedules (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  agent TEXT NOT NULL,
  prompt TEXT NOT NULL,
  cron TEXT NOT NULL,
  timezone TEXT NOT NULL,
  tier INTEGER,
  tools TEXT NOT NULL,
  metadata TEXT NOT NULL,
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
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
`,
};

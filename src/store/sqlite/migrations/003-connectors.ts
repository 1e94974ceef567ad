import type { Migration } from "../migrate.ts";

/**
 * Connectors with what they may do, and how a token is shown their tools. `definition` is encrypted, since it
 * contains the secrets. `tools` is what the upstream last offered, so startup queries no upstream.
 */
export const CONNECTORS: Migration = {
  name: "connectors",
  sql: `
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
) STRICT;
CREATE UNIQUE INDEX connectors_by_name ON connectors (workspace_id, name);

ALTER TABLE tokens ADD COLUMN tools_mode TEXT NOT NULL DEFAULT 'all';
`,
};

import type { Migration } from "../migrate.ts";

/**
 * Signed-in browsers. A session belongs to a token, whose rights are read at each use and not stored here. The hash
 * is of the secret in the session's cookie. An ended session has no row.
 */
export const SESSIONS: Migration = {
  name: "sessions of signed-in browsers",
  sql: `
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  token_id TEXT NOT NULL REFERENCES tokens (id),
  secret_hash BLOB NOT NULL,
  user_agent TEXT,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_by_secret ON sessions (secret_hash);
CREATE INDEX sessions_by_workspace ON sessions (workspace_id, id);
CREATE INDEX sessions_by_token ON sessions (workspace_id, token_id, id);
CREATE INDEX sessions_by_end ON sessions (expires_at);
`,
};

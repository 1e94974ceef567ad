import type { Migration } from "../migrate.ts";

/**
 * The vault. Everything inside is identified by integers: passages and pages by their document's key times 65,536
 * plus a position (`vault/rows/keys.ts`). A document is `building` while its parts are written, `live` from one
 * transaction on, and `removing` while they are deleted. Only live documents are ever returned.
 *
 * Indexes contain no text except the path of a scope. A deleted row is overwritten, but the contents of its index
 * cell may remain in a page that was split, so indexes contain keyed hashes instead. The vec0 tables, one for each
 * vector space, are created with their space.
 */
export const VAULT: Migration = {
  name: "vault",
  sql: `
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
`,
};

import type { Migration } from "../migrate.ts";

/**
 * Data kept alongside the ledger so that proofs and filters need not read all of it. Everything except checkpoints and
 * keys can be rebuilt from the entries, and is when a ledger is verified.
 *
 * `ledger_tiles`: tiles of the Merkle tree, 256 hashes each (8,192 bytes; the last tile of a level above 0 can have
 * fewer). Level 0 contains leaves, level n the roots of the tiles of level n - 1. `ledger_index`: for each 256
 * entries, which of them have `key` (such as `agent:scout`), one bit per entry, the lowest bit of the first byte
 * first.
 */
export const EVIDENCE: Migration = {
  name: "tree, index, checkpoints and keys of the ledger",
  sql: `
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
`,
};

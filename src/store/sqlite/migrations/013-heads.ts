import type { Migration } from "../migrate.ts";

/**
 * `ledger_heads`: of each workspace's ledger, the head that the server signed in the transaction of the last commit. One row
 * a workspace, which each commit overwrites.
 *
 * A migration cannot sign. It leaves a note in `meta`, which the transaction that signs the heads for the first time takes
 * away: `ledger verify` then knows that a start was broken off between the two.
 */
export const HEADS: Migration = {
  name: "signed heads of the ledgers",
  sql: `
CREATE TABLE ledger_heads (
  workspace_id INTEGER PRIMARY KEY REFERENCES workspaces (id),
  note TEXT NOT NULL
) STRICT;

INSERT INTO meta (key, value) SELECT 'ledger_heads', 'unsigned' WHERE EXISTS (SELECT 1 FROM ledger);
`,
};

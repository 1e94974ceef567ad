import type { Migration } from "../migrate.ts";

/**
 * `ledger_heads`: for each workspace's ledger, the head that the server signed in the transaction of the last commit.
 * One row per workspace, overwritten by each commit.
 *
 * A migration cannot sign. It leaves a note in `meta`, which is removed by the transaction that first signs the
 * heads. The note tells `ledger verify` that a start was interrupted in between.
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

import type { Migration } from "../migrate.ts";

/**
 * `ledger_node_heads`: the note by which a node signs the heads of all its ledgers together, in the transaction of
 * each commit. A SQLite file has one writer, so there is one row, for node 1.
 *
 * `ledger_heads` keeps a row for each workspace, which from now on contains the text of its head without a signature.
 * Until the first commit after this migration, the rows are the individually signed notes from earlier versions.
 */
export const NODE_HEAD: Migration = {
  name: "one signature over the heads of all ledgers",
  sql: `
CREATE TABLE ledger_node_heads (
  node INTEGER PRIMARY KEY,
  note TEXT NOT NULL
) STRICT;
`,
};

import type { Migration } from "../migrate.ts";

/**
 * `attempts`: how many times a background response has been started; null for other responses. Until such a response
 * has ended, its `outcome_seq` is 0.
 *
 * `response_events`: the events of streamed background responses, like `task_events` for tasks. Its rows may be long,
 * so the table has a rowid: see the next migration.
 */
export const BACKGROUND_RESPONSES: Migration = {
  name: "background responses",
  sql: `
ALTER TABLE responses ADD COLUMN attempts INTEGER;
CREATE INDEX responses_open ON responses (workspace_id, request_seq) WHERE outcome_seq = 0;
CREATE INDEX responses_outcome ON responses (workspace_id, outcome_seq);

CREATE TABLE response_events (
  workspace_id INTEGER NOT NULL,
  response_id TEXT NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  frames BLOB NOT NULL,
  PRIMARY KEY (workspace_id, response_id, first_id)
) STRICT;
`,
};

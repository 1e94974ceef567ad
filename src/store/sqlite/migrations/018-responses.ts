import type { Migration } from "../migrate.ts";

/**
 * Responses that clients may continue or read again. There are no texts here: the request is the input payload of the
 * entry `request_seq`, the response the output payload of `outcome_seq`, so they are erased and expire as all
 * payloads do. A row only maps an id to these entries, which determine whose response it is.
 *
 * `native`: made by a provider that speaks Responses, and known to it by this id. `bytes`: the size of the whole
 * conversation so far. `response_items`: the items that a response has made, which later requests may refer to.
 */
export const RESPONSES: Migration = {
  name: "stored responses",
  sql: `
CREATE TABLE responses (
  workspace_id INTEGER NOT NULL,
  id TEXT NOT NULL,
  agent_id INTEGER,
  model TEXT NOT NULL,
  native INTEGER NOT NULL,
  request_seq INTEGER NOT NULL,
  outcome_seq INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX responses_request ON responses (workspace_id, request_seq);

CREATE TABLE response_items (
  workspace_id INTEGER NOT NULL,
  id TEXT NOT NULL,
  response_id TEXT NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX response_items_response ON response_items (workspace_id, response_id);
`,
};

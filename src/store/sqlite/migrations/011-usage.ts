import type { Migration } from "../migrate.ts";

/**
 * Usage over time. A call is added to one row of `usage_counts` (`slot`: the start of its five minutes; `agent_id` 0:
 * the caller does not act as an agent; `bucket`: its latency class, -1 if not measured). Soon after, those rows are
 * moved into `usage_slots`: one row for each agent (-1: the whole workspace) and each slot of five minutes, an hour
 * or a day. A chart of a month then reads hundreds of rows instead of hundreds of thousands.
 *
 * The index contains the columns that agents are ranked by, without the facts, which are many times as long.
 */
export const USAGE: Migration = {
  name: "usage over time",
  sql: `
CREATE TABLE usage_counts (
  workspace_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  outcome TEXT NOT NULL,
  bucket INTEGER NOT NULL,
  count INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, slot, agent_id, kind, name, outcome, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_slots (
  workspace_id INTEGER NOT NULL,
  width INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (workspace_id, width, agent_id, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_slots_credits ON usage_slots (workspace_id, width, agent_id, slot, credits);
`,
};

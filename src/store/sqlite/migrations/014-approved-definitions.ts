import type { Migration } from "../migrate.ts";

/**
 * Decisions refer to the connector, tool or agent that was shown, not to a name that another one may have taken
 * since.
 *
 * Approvals: `definition_hash` covers the connector and the tool that was shown; null in older approvals. `first_seq`
 * is the entry that first presented the call; null while `pending_seq` is that entry.
 *
 * Schedules: `agent_id` is the agent that was named; null if it was archived before this migration.
 */
export const APPROVED_DEFINITIONS: Migration = {
  name: "what approvals are bound to",
  sql: `
ALTER TABLE approvals ADD COLUMN definition_hash TEXT;
ALTER TABLE approvals ADD COLUMN first_seq INTEGER;

ALTER TABLE schedules ADD COLUMN agent_id INTEGER;
UPDATE schedules SET agent_id = (SELECT a.id FROM agents a
  WHERE a.workspace_id = schedules.workspace_id AND a.name = schedules.agent AND a.archived_at IS NULL);
`,
};

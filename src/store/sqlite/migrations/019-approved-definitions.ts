import type { Migration } from "../migrate.ts";

/**
 * `definition_hash` is of the connector and the tool that people were shown; null in approvals of before, which stand for none.
 * `first_seq` is the entry that presented the call first; null while `pending_seq` is that entry.
 */
export const APPROVED_DEFINITIONS: Migration = {
  name: "what approvals are given for",
  sql: `
ALTER TABLE approvals ADD COLUMN definition_hash TEXT;
ALTER TABLE approvals ADD COLUMN first_seq INTEGER;
`,
};

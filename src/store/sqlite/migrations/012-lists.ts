import type { Migration } from "../migrate.ts";

/**
 * Indexes for lists. Approvals are listed by status: for all agents and tools, for one agent or tool, or for one of
 * each. Each index has the list's order after its filter, so nothing is scanned or sorted, however long the history
 * is. The number and size of a scope's documents are computed from numbers only.
 */
export const LISTS: Migration = {
  name: "lists of past approvals and of the vault's scopes",
  sql: `
CREATE INDEX approvals_by_status ON approvals (workspace_id, status, pending_seq);
CREATE INDEX approvals_by_agent ON approvals (workspace_id, agent, status, pending_seq);
CREATE INDEX approvals_by_tool ON approvals (workspace_id, tool, status, pending_seq);
CREATE INDEX approvals_by_question ON approvals (workspace_id, agent, tool, status, pending_seq);
CREATE INDEX vault_documents_sizes ON vault_documents (scope_id, characters, updated_at) WHERE state = 'live';
`,
};

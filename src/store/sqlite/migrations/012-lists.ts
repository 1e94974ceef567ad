import type { Migration } from "../migrate.ts";

/**
 * Indexes of lists. Approvals are listed by what became of them, of all agents and tools, of one, or of one of each: each
 * index has the order of the list behind its filter, so that nothing is scanned or sorted however long the history is. What
 * documents of a scope there are, and how large they are, is read of numbers alone.
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

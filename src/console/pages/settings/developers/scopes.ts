import type { NamedScope } from "../../../../http/api.ts";

/** What each scope permits. */
export const SCOPE_WORDS: Readonly<Record<NamedScope, string>> = {
  "tasks:read": "See tasks, their steps and their results",
  "tasks:write": "Run tasks, and cancel them",
  "agents:read": "See agents, models and tiers",
  "agents:write": "Create, change and archive agents",
  "vault:read": "Search and read documents",
  "vault:write": "Write and delete documents",
  "connectors:read": "See connectors and their tools",
  "connectors:write": "Add, refresh and remove connectors",
  "approvals:write": "Decide on approvals; stop and resume",
  "ledger:read": "Read, verify and export the ledger; see statistics",
  "tokens:write": "Issue, rotate and revoke tokens; end sessions",
  "models:call": "Call models through the OpenAI and Anthropic APIs",
  "settings:write": "Change limits and the budget; see the webhook; erase content",
};

export const SCOPES = Object.keys(SCOPE_WORDS) as readonly NamedScope[];

export const ADMIN = "admin";

/** Default scopes of a token that acts as an agent (contract, section 2). */
export const AGENT_DEFAULT = [
  "tasks:read",
  "tasks:write",
  "vault:read",
  "connectors:read",
  "models:call",
  "tools:*",
] as const;

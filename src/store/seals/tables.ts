/** A table whose rows are sealed. */
export interface SealedTable {
  /** The columns that identify a row. */
  readonly key: readonly string[];
  /** The columns that carry authority. Their order is part of the seal: never change it. */
  readonly columns: readonly string[];
  /**
   * Columns that later versions added, in order. Those at the end that are null are not part of the seal, so older rows keep
   * theirs.
   */
  readonly added?: readonly string[];
  /**
   * Which rows are sealed, as SQL. The others are history and never acted on. Finished tasks keep their seal, unless
   * an earlier version ended them.
   */
  readonly sealed: string;
  /** Whether only a store that nodes share has the table. */
  readonly isOnlyShared?: true;
}

/**
 * The tables whose rows the server acts on without finding them in the ledger, and the columns that each seal covers.
 *
 * Anyone who can write the file can change a column that is not listed, such as a counter, the time of last use or a
 * result. What a caller may do, and anything signed or sent, MUST NOT depend on such a column.
 */
export const SEALED_TABLES = {
  workspaces: {
    key: ["id"],
    columns: [
      "name",
      "status",
      "requests_per_minute",
      "concurrent_tasks",
      "enforcement",
      "credits_per_month",
      "created_at",
    ],
    sealed: "TRUE",
  },
  agents: {
    key: ["id"],
    columns: [
      "workspace_id",
      "name",
      "owner",
      "description",
      "instructions",
      "memory_scope",
      "tier_policy",
      "tools",
      "approvals",
      "approvals_required",
      "max_steps",
      "credits_per_day",
      "status",
      "version",
      "created_at",
      "updated_at",
    ],
    sealed: "archived_at IS NULL",
  },
  tokens: {
    key: ["id"],
    columns: [
      "workspace_id",
      "name",
      "agent_id",
      "scopes",
      "tools_mode",
      "person",
      "role",
      "secret_hash",
      "previous_hash",
      "previous_until",
      "expires_at",
      "created_by",
      "created_at",
      "rotations",
    ],
    sealed: "revoked_at IS NULL",
  },
  sessions: {
    key: ["id"],
    columns: ["workspace_id", "token_id", "secret_hash", "created_at", "expires_at"],
    sealed: "TRUE",
  },
  connectors: {
    key: ["id"],
    columns: [
      "workspace_id",
      "name",
      "kind",
      "definition",
      "scopes",
      "tools",
      "authorised_by",
      "authorised_at",
    ],
    sealed: "TRUE",
  },
  schedules: {
    key: ["workspace_id", "id"],
    columns: [
      "name",
      "agent_id",
      "agent",
      "prompt",
      "cron",
      "timezone",
      "tier",
      "tools",
      "metadata",
      "missed",
      "status",
      "version",
      "created_by",
      "runs_as",
      "next_at",
    ],
    sealed: "TRUE",
  },
  tasks: {
    key: ["workspace_id", "id"],
    columns: ["agent_id", "agent", "tier", "tools", "metadata", "dispatch_seq", "created_by", "created_at"],
    added: ["input_form", "continues"],
    sealed: "finished_at IS NULL",
  },
  task_answers: {
    key: ["workspace_id", "task_id", "step"],
    columns: ["body"],
    sealed: "TRUE",
  },
  sign_in_links: {
    key: ["hash"],
    columns: ["workspace_id", "token_id", "secret_hash", "maker", "maker_seq", "expires_at"],
    sealed: "TRUE",
    isOnlyShared: true,
  },
  webhook_deliveries: {
    key: ["workspace_id", "id"],
    columns: ["type", "body", "created_at"],
    sealed: "TRUE",
  },
  meta: {
    key: ["key"],
    columns: ["value"],
    sealed:
      // Ranges instead of LIKE, which ignores case only in SQLite: `0` follows `/`, and `;` follows `:`.
      "key = 'seals' OR key >= 'quoted/' AND key < 'quoted0' OR key >= 'payload_expiry:' AND key < 'payload_expiry;'" +
      " OR key >= 'ledger_history:' AND key < 'ledger_history;'",
  },
} as const satisfies Readonly<Record<string, SealedTable>>;

export type SealedName = keyof typeof SEALED_TABLES;

/** The columns by which a row is found. */
export type RowKey<Name extends SealedName> = (typeof SEALED_TABLES)[Name]["key"][number];

/** The columns that a seal covers. */
export type SealedColumn<Name extends SealedName> =
  | RowKey<Name>
  | (typeof SEALED_TABLES)[Name]["columns"][number]
  | AddedColumn<(typeof SEALED_TABLES)[Name]>;

type AddedColumn<Table> = Table extends { readonly added: readonly (infer Column)[] } ? Column : never;

/** The sealed tables that every store has. */
export const SEALED_NAMES = Object.keys(SEALED_TABLES)
  .filter(isSealedName)
  .filter((name) => !("isOnlyShared" in SEALED_TABLES[name]));

function isSealedName(name: string): name is SealedName {
  return name in SEALED_TABLES;
}

import type { Migration } from "../migrate.ts";

/**
 * Tokens that have not been revoked, which are counted when one is issued. With `revoked_at`, the count reads no rows,
 * whose scopes may be long.
 */
export const TOKEN_COUNT: Migration = {
  name: "token count",
  sql: "CREATE INDEX tokens_unrevoked ON tokens (workspace_id, revoked_at) WHERE revoked_at IS NULL;",
};

import type { Migration } from "../migrate.ts";

/** Tokens that have not been revoked, which are counted when one is issued. */
export const TOKEN_COUNT: Migration = {
  name: "token count",
  sql: "CREATE INDEX tokens_unrevoked ON tokens (workspace_id) WHERE revoked_at IS NULL;",
};

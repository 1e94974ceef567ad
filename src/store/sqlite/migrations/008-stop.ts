import type { Migration } from "../migrate.ts";

/**
 * A workspace can be stopped as a whole: all of its agents then count as stopped, whatever their own rows contain.
 */
export const STOP: Migration = {
  name: "workspaces that can be stopped",
  sql: `
ALTER TABLE workspaces ADD COLUMN status TEXT NOT NULL DEFAULT 'active';
`,
};

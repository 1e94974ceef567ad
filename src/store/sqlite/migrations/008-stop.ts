import type { Migration } from "../migrate.ts";

/** A workspace can be stopped as a whole: all of its agents count as stopped then, whatever their own rows say. */
export const STOP: Migration = {
  name: "workspaces that can be stopped",
  sql: `
ALTER TABLE workspaces ADD COLUMN status TEXT NOT NULL DEFAULT 'active';
`,
};

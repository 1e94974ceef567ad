import type { Migration } from "../migrate.ts";

/**
 * What an in-flight call will be charged if its process dies, in micro-credits: the reservation for a task's open
 * model call (`open_reserved`, only meaningful together with `open_model_call`), and the price of a tool call.
 */
export const BUDGETS: Migration = {
  name: "charges for calls in flight",
  sql: `
ALTER TABLE tasks ADD COLUMN open_reserved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tool_calls ADD COLUMN price INTEGER NOT NULL DEFAULT 0;
`,
};

import type { Migration } from "../migrate.ts";

/**
 * What a call that is out will be charged where its process dies, in micro-credits: of the open call of a model what was reserved for it
 * (`open_reserved`, of meaning beside `open_model_call` alone), of a tool call its price.
 */
export const BUDGETS: Migration = {
  name: "what calls that are out will be charged",
  sql: `
ALTER TABLE tasks ADD COLUMN open_reserved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tool_calls ADD COLUMN price INTEGER NOT NULL DEFAULT 0;
`,
};

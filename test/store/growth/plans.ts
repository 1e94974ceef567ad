/** Finds statements that read more the longer the history is. */
import type { Database } from "bun:sqlite";

/** Tables whose rows grow with what has happened, rather than with what people have set up. */
const GROWING: ReadonlySet<string> = new Set([
  "agents",
  "approval_votes",
  "approvals",
  "idempotency_keys",
  "ledger",
  "ledger_checkpoints",
  "ledger_index",
  "ledger_tiles",
  "payloads",
  "response_events",
  "response_items",
  "responses",
  "sessions",
  "spending",
  "task_answers",
  "task_events",
  "tasks",
  "tokens",
  "tool_calls",
  "usage_counts",
  "usage_slots",
  "vault_chunks",
  "vault_documents",
  "vault_metadata",
  "vault_pages",
  "vault_pending",
  "vault_segments",
  "webhook_deliveries",
]);

/** Partial indexes of what is not finished, which stay short. */
const UNFINISHED =
  /\b(tasks_open|approvals_pending|approvals_expiring|responses_open|webhook_deliveries_due|vault_documents_unfinished|vault_segments_building)\b/;

/** The steps of a statement's plan that read a whole growing table, or a workspace's whole part of one. */
export function growingSteps(database: Database, sql: string): string[] {
  const aliases = aliasesOf(sql);
  const plan = planOf(database, sql);
  // Without an order, a limit may be reached only after many rows that do not match. Sorting reads all of them first.
  const isSorted = plan.some((step) => step.startsWith("USE TEMP B-TREE FOR ORDER BY"));
  const isLimited = !isSorted && /\bORDER BY\b[^()]*\bLIMIT\b[^()]*$/.test(sql);
  return plan.filter((step) => {
    const [, kind = "", name = ""] = /^(SCAN|SEARCH) (?:main\.)?(\w+)/.exec(step) ?? [];
    const table = aliases.get(name) ?? name;
    if (!GROWING.has(table) || UNFINISHED.test(step)) return false;
    if (kind === "SCAN") return true;
    return !isLimited && isWholeWorkspace(step);
  });
}

/** Whether a search is narrowed by the workspace only, or has no end. MIN and MAX read one row all the same. */
function isWholeWorkspace(step: string): boolean {
  const [, conditions] = /\(([^()]*)\)$/.exec(step) ?? [];
  if (conditions === undefined) return false;
  const rest = conditions.split(" AND ").filter((condition) => condition !== "workspace_id=?");
  const isRange =
    rest.length === 2 && rest.some((one) => one.endsWith(">?")) && rest.some((one) => one.endsWith("<?"));
  return !isRange && rest.every((condition) => !condition.endsWith("=?"));
}

function planOf(database: Database, sql: string): string[] {
  const explained = `EXPLAIN QUERY PLAN ${sql.replace(/\$(\d+)/g, "?$1")}`;
  return database
    .query<{ detail: string }, []>(explained)
    .all()
    .map(({ detail }) => detail);
}

/** The tables of a statement by the names that its plan uses. */
function aliasesOf(sql: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const named = /\b(?:FROM|JOIN|UPDATE|INTO)\s+(?:main\.)?(\w+)(?:\s+AS)?\s+(\w+)/g;
  for (const [, table = "", alias = ""] of sql.matchAll(named)) found.set(alias, table);
  return found;
}

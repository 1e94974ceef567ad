/** Gatehouse as the next version may be: its schema has one more migration, which adds to tables that are in constant use. */
import type { Migration } from "../../src/store/postgres/migrate.ts";
import { MIGRATIONS } from "../../src/store/postgres/migrations/index.ts";

const TABLES = ["tasks", "agents", "ledger", "ledger_tails", "task_events", "tokens"];
const NEXT: Migration = {
  name: "next",
  sql: [
    ...TABLES.map((table) => `ALTER TABLE ${table} ADD COLUMN added BIGINT`),
    "CREATE INDEX tasks_added ON tasks (added)",
    "CREATE TABLE added (id BIGINT NOT NULL PRIMARY KEY)",
  ].join(";\n"),
  isAdditive: true,
};

// The program's own list, before anything has read it.
(MIGRATIONS as Migration[]).push(NEXT);
await import("../../src/main.ts");

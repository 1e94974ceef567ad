import { Database } from "bun:sqlite";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { LONG_TEXTS } from "../../src/store/sqlite/migrations/021-long-texts.ts";
import { MIGRATIONS, versionOf } from "../../src/store/sqlite/migrations/index.ts";

// Statements that undo migrations, for tests that turn a database into one of an earlier version. They MUST be executed
// before tables are changed in other ways.

/** Undoes the migration that gives tables with long texts a rowid. */
export const WITHOUT_LONG_TEXTS: readonly string[] = [
  "DROP INDEX tokens_unrevoked",
  ...earlierTables([
    ...["payloads", "tasks", "tool_calls", "task_answers", "task_events", "schedules", "usage_slots", "meta"],
  ]),
];

/**
 * Replaces tables with their versions from before that migration, with the same rows. Tables that others refer to
 * come first.
 */
function earlierTables(tables: readonly string[]): readonly string[] {
  using earlier = new Database(":memory:");
  migrate(earlier, MIGRATIONS.slice(0, versionOf(LONG_TEXTS) - 1));
  const columns = (table: string) =>
    earlier
      .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
      .all(table)
      .map(({ name }) => name)
      .join(", ");
  const made = (type: string, table: string) =>
    earlier
      .query<{ sql: string }, [string, string]>(
        "SELECT sql FROM sqlite_schema WHERE type = ? AND tbl_name = ? AND sql IS NOT NULL",
      )
      .all(type, table)
      .map(({ sql }) => sql);
  return [
    ...tables.flatMap((table) => [
      `ALTER TABLE ${table} RENAME TO later_${table}`,
      ...made("table", table),
      `INSERT INTO ${table} (${columns(table)}) SELECT ${columns(table)} FROM later_${table}`,
    ]),
    ...tables.toReversed().map((table) => `DROP TABLE later_${table}`),
    ...tables.flatMap((table) => made("index", table)),
  ];
}

/** Undoes every change since background responses were introduced. */
export const WITHOUT_BACKGROUND_RESPONSES: readonly string[] = [
  ...WITHOUT_LONG_TEXTS,
  "DROP TABLE response_events",
  "DROP INDEX responses_outcome",
  "DROP INDEX responses_open",
  "ALTER TABLE responses DROP COLUMN attempts",
];

/** Undoes every change since tasks accept messages. */
export const WITHOUT_TASK_MESSAGES: readonly string[] = [
  ...WITHOUT_BACKGROUND_RESPONSES,
  "DROP INDEX tasks_continuing",
  "ALTER TABLE tasks DROP COLUMN input_form",
  "ALTER TABLE tasks DROP COLUMN continues",
];

/** Undoes everything since clients call models. */
export const WITHOUT_CLIENTS_CALLS: readonly string[] = [
  ...WITHOUT_TASK_MESSAGES,
  "DROP TABLE response_items",
  "DROP TABLE responses",
];

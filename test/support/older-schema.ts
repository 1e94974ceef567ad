import { Database } from "bun:sqlite";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { LONG_TEXTS } from "../../src/store/sqlite/migrations/021-long-texts.ts";
import { MIGRATIONS, versionOf } from "../../src/store/sqlite/migrations/index.ts";

// Statements that undo migrations, for tests that turn a database into one of an earlier version. They MUST be executed
// before tables are changed in other ways.

/** Undoes the migration that gives tables with long texts a rowid. */
export const WITHOUT_LONG_TEXTS: readonly string[] = earlierTables([
  ...["payloads", "task_answers", "task_events", "schedules", "usage_slots", "meta"],
]);

/** Replaces tables by those from before that migration, with the same rows. */
function earlierTables(tables: readonly string[]): readonly string[] {
  using earlier = new Database(":memory:");
  migrate(earlier, MIGRATIONS.slice(0, versionOf(LONG_TEXTS) - 1));
  return tables.flatMap((table) => {
    const columns = earlier
      .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
      .all(table);
    const names = columns.map(({ name }) => name).join(", ");
    const of = (type: string) =>
      earlier
        .query<{ sql: string }, [string, string]>(
          "SELECT sql FROM sqlite_schema WHERE type = ? AND tbl_name = ? AND sql IS NOT NULL",
        )
        .all(type, table)
        .map(({ sql }) => sql);
    return [
      `ALTER TABLE ${table} RENAME TO later_${table}`,
      ...of("table"),
      `INSERT INTO ${table} (${names}) SELECT ${names} FROM later_${table}`,
      `DROP TABLE later_${table}`,
      ...of("index"),
    ];
  });
}

/** Undoes everything since responses are made in the background. */
export const WITHOUT_BACKGROUND_RESPONSES: readonly string[] = [
  ...WITHOUT_LONG_TEXTS,
  "DROP TABLE response_events",
  "DROP INDEX responses_outcome",
  "DROP INDEX responses_open",
  "ALTER TABLE responses DROP COLUMN attempts",
];

/** Undoes everything since tasks take messages. */
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

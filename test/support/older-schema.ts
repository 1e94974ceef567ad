/** Statements that undo a migration, for tests that turn a database into one of an earlier version. */
export const WITHOUT_TASK_MESSAGES: readonly string[] = [
  "DROP INDEX tasks_continuing",
  "ALTER TABLE tasks DROP COLUMN input_form",
  "ALTER TABLE tasks DROP COLUMN continues",
];

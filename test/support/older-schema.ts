/** Statements that undo a migration, for tests that turn a database into one of an earlier version. */
export const WITHOUT_TASK_MESSAGES: readonly string[] = [
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

/** Statements that undo a migration, for tests that turn a database into one of an earlier version. */
export const WITHOUT_BACKGROUND_RESPONSES: readonly string[] = [
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

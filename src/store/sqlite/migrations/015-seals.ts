import type { Migration } from "../migrate.ts";

/**
 * Seals of rows that carry authority (`store/seals/tables.ts`). Null until the row is sealed.
 *
 * A migration cannot compute seals. It leaves a note in `meta` if there is anything to seal. Opening the store then
 * seals the rows and replaces the note (`store/sqlite/open-seals.ts`).
 *
 * `tokens.rotations` counts a token's rotations. Each `token.rotate` entry contains the same number, so restoring a
 * row from before a rotation is noticed.
 */
export const SEALS: Migration = {
  name: "seals of rows that carry authority",
  sql: `
ALTER TABLE tokens ADD COLUMN rotations INTEGER NOT NULL DEFAULT 0;

ALTER TABLE workspaces ADD COLUMN seal BLOB;
ALTER TABLE agents ADD COLUMN seal BLOB;
ALTER TABLE tokens ADD COLUMN seal BLOB;
ALTER TABLE sessions ADD COLUMN seal BLOB;
ALTER TABLE connectors ADD COLUMN seal BLOB;
ALTER TABLE schedules ADD COLUMN seal BLOB;
ALTER TABLE tasks ADD COLUMN seal BLOB;
ALTER TABLE task_answers ADD COLUMN seal BLOB;
ALTER TABLE webhook_deliveries ADD COLUMN seal BLOB;
ALTER TABLE meta ADD COLUMN seal BLOB;

INSERT INTO meta (key, value) SELECT 'seals', 'unsealed' WHERE EXISTS (SELECT 1 FROM workspaces);
`,
};

import { rmSync } from "node:fs";
import { join } from "node:path";
import Type, { type Static } from "typebox";
import { OperatorError } from "../../base/errors.ts";
import { validator } from "../../base/schema.ts";
import { isMissing, readTextFile } from "../../config/read-file.ts";
import { replaceKeyFile, syncDirectory } from "../key-file.ts";

const FILE = "restored.json";
const LIMIT = 16 * 1024;

/** How a data directory was restored. It stays in the directory until the first start has taken account of it. */
const RestoredNote = Type.Object({
  /** The backup's file name, without its folder. */
  file: Type.String({ maxLength: 255 }),
  /** When the backup was made, and when it was restored: RFC 3339, UTC. */
  created_at: Type.String({ maxLength: 40 }),
  restored_at: Type.String({ maxLength: 40 }),
  /** The version that made the backup. */
  program: Type.String({ maxLength: 100 }),
  /** Whether tasks and responses that had not ended are ended or continued. */
  unfinished: Type.Enum(["end", "continue"]),
  /** Whether the ledgers have the entries of this restoration. */
  recorded: Type.Boolean(),
});

export type RestoredNote = Static<typeof RestoredNote>;

const note = validator(RestoredNote);

/** @throws OperatorError if the directory has a note that cannot be understood */
export function readRestoredNote(directory: string): RestoredNote | null {
  const path = join(directory, FILE);
  let value: unknown;
  try {
    value = JSON.parse(readTextFile(path, LIMIT));
  } catch (error) {
    if (isMissing(error)) return null;
    value = undefined;
  }
  if (note.is(value)) return value;
  throw new OperatorError(
    `the file ${path} is damaged: it tells whether unfinished tasks of the backup may run again`,
    "restore the backup once more",
  );
}

export function writeRestoredNote(directory: string, value: RestoredNote): void {
  replaceKeyFile(join(directory, FILE), `${JSON.stringify(value, null, 2)}\n`);
}

export function removeRestoredNote(directory: string): void {
  rmSync(join(directory, FILE), { force: true });
  syncDirectory(directory);
}

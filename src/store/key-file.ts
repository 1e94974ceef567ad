import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { OperatorError } from "../base/errors.ts";

/** Maximum size of a key file in bytes. A key is far shorter, so a longer file contains something else. */
const KEY_FILE_LIMIT = 256;

/**
 * Reads a file that contains a key, decoded by `read`. Returns undefined if there is no file.
 * @throws OperatorError if the file cannot be read, anyone but its owner may use it, or `read` returns undefined
 */
export function readKeyFile<Key>(
  path: string,
  read: (content: string) => Key | undefined,
  hint: string,
): Key | undefined {
  let descriptor: number;
  try {
    // O_NONBLOCK: opening a pipe would otherwise block.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw unusable(path, `cannot be opened (${codeOf(error)})`, "make it readable for this user");
  }
  try {
    const stats = fstatSync(descriptor);
    const { mode } = stats;
    if (!stats.isFile()) throw unusable(path, "is not a file", "move it away, then try again");
    if ((mode & 0o077) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, "0");
      throw unusable(path, `is accessible to other users (mode ${shown})`, `run chmod 600 ${path}`);
    }
    const content = Buffer.alloc(KEY_FILE_LIMIT);
    const length = readSync(descriptor, content, 0, KEY_FILE_LIMIT, 0);
    const key = read(content.toString("latin1", 0, length));
    content.fill(0);
    if (key !== undefined) return key;
    throw unusable(path, "does not contain a key", hint);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Creates a key file with mode 0600. It is written and synced under another name first, so a file of this name always
 * contains a whole key.
 * @throws OperatorError, also if the file already exists
 */
export function makeKeyFile(path: string, content: string): void {
  const draft = `${path}.new`;
  try {
    writeDraft(draft, content);
    // Not a rename, which would overwrite a key that someone else has just put there.
    linkSync(draft, path);
    rmSync(draft);
    syncDirectory(dirname(path));
  } catch (error) {
    throw unusable(
      path,
      `cannot be created (${codeOf(error)})`,
      "make the data directory writable for this user",
    );
  }
}

/**
 * Replaces the content of a key file, mode 0600. A file of this name with a whole key exists at every moment.
 * @throws OperatorError
 */
export function replaceKeyFile(path: string, content: string): void {
  const draft = `${path}.new`;
  try {
    writeDraft(draft, content);
    renameSync(draft, path);
    syncDirectory(dirname(path));
  } catch (error) {
    removeDraft(draft);
    throw unusable(
      path,
      `cannot be written (${codeOf(error)})`,
      "make the data directory writable for this user",
    );
  }
}

/** Removes a draft, which contains the key. If that fails, the next write replaces it. */
function removeDraft(draft: string): void {
  try {
    rmSync(draft, { force: true });
  } catch {
    // The caller reports why the key could not be written.
  }
}

function writeDraft(draft: string, content: string): void {
  // Left by a process that died before renaming it, so its key was never used.
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    writeSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Syncs a directory, so a new name survives a power cut. Otherwise everything sealed or signed with a new key would
 * be lost with it.
 */
export function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function unusable(path: string, what: string, hint: string): OperatorError {
  return new OperatorError(`the key file ${path} ${what}`, hint);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

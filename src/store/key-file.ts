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

/** A key is far shorter; anything longer is something else. */
const KEY_FILE_LIMIT = 256;

/**
 * The content of a file that holds a key, as `read` understands it; undefined where there is no file.
 * @throws OperatorError where it can't be read, others than its owner may use it, or `read` makes nothing of it
 */
export function readKeyFile<Key>(
  path: string,
  read: (content: string) => Key | undefined,
  hint: string,
): Key | undefined {
  let descriptor: number;
  try {
    // A pipe in its place would be waited for.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw unusable(path, `cannot be opened (${codeOf(error)})`, "let this user read it");
  }
  try {
    const stats = fstatSync(descriptor);
    const { mode } = stats;
    if (!stats.isFile()) throw unusable(path, "is not a file", "remove what stands in its place");
    if ((mode & 0o077) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, "0");
      throw unusable(path, `may be used by others than its owner (mode ${shown})`, `run chmod 600 ${path}`);
    }
    const content = Buffer.alloc(KEY_FILE_LIMIT);
    const length = readSync(descriptor, content, 0, KEY_FILE_LIMIT, 0);
    const key = read(content.toString("latin1", 0, length));
    content.fill(0);
    if (key !== undefined) return key;
    throw unusable(path, "holds no key", hint);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Makes a file with a key, mode 0600. It is written and synced under another name first: whatever happens, a file of
 * this name holds a whole key.
 * @throws OperatorError, also where there is a file already
 */
export function makeKeyFile(path: string, content: string): void {
  const draft = `${path}.new`;
  try {
    writeDraft(draft, content);
    // Not a rename: that would overwrite a key which somebody put there meanwhile.
    linkSync(draft, path);
    rmSync(draft);
    syncDirectory(dirname(path));
  } catch (error) {
    throw unusable(path, `cannot be made (${codeOf(error)})`, "let this user write the data directory");
  }
}

/**
 * Puts another content in the place of a file that holds a key, mode 0600. At each moment there is a file of this name that
 * holds a whole key.
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
    throw unusable(path, `cannot be written (${codeOf(error)})`, "let this user write the data directory");
  }
}

/** A draft holds the key. If it cannot be removed, the next write replaces it. */
function removeDraft(draft: string): void {
  try {
    rmSync(draft, { force: true });
  } catch {
    // The caller reports why the key could not be written.
  }
}

function writeDraft(draft: string, content: string): void {
  // Left by a process that died before the draft got its name: nobody has used it.
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    writeSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A name has to last as well: what was sealed or signed with a key that a power cut took away is lost. */
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

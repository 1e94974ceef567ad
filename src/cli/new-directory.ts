import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { OperatorError } from "../base/errors.ts";
import { syncDirectory } from "../store/key-file.ts";

/**
 * Fills a data directory that does not exist yet or is empty. It is made in a hidden folder, and appears once `fill` is done; if
 * that fails, or a signal ends the process, nothing is left. A directory that exists may be a mount point or a link, which
 * cannot be replaced: its files are then moved into it, `last` after all others.
 * @throws OperatorError if the directory is not empty
 */
export async function createDirectory<Result>(
  name: string,
  last: string,
  fill: (directory: string) => Promise<Result>,
): Promise<Result> {
  const target = existsSync(name) ? realpathSync(name) : resolve(name);
  const exists = existsSync(target);
  requireEmpty(target);
  mkdirSync(dirname(target), { recursive: true });
  const prefix = `.${basename(target)}.partial-`;
  const hidden = mkdtempSync(exists ? join(target, prefix) : join(dirname(target), prefix));
  const removeUnfinished = () => rmSync(hidden, { recursive: true, force: true });
  const undoSignals = onInterruption(removeUnfinished);
  try {
    const result = await fill(hidden);
    if (exists) moveUp(hidden, target, last);
    else {
      requireEmpty(target);
      renameSync(hidden, target);
    }
    syncDirectory(exists ? target : dirname(target));
    return result;
  } finally {
    removeUnfinished();
    undoSignals();
  }
}

function moveUp(from: string, to: string, last: string): void {
  requireEmpty(to, [basename(from)]);
  const names = readdirSync(from).filter((name) => name !== last);
  for (const name of [...names, last]) renameSync(join(from, name), join(to, name));
  rmdirSync(from);
}

function requireEmpty(directory: string, except: readonly string[] = []): void {
  if (!existsSync(directory)) return;
  // Every file system of its own has such a folder.
  if (readdirSync(directory).every((name) => name === "lost+found" || except.includes(name))) return;
  throw new OperatorError(
    `the data directory ${directory} is not empty`,
    "choose another directory with --data: existing files are never overwritten",
  );
}

/** The unfinished directory may have keys. */
function onInterruption(remove: () => void): () => void {
  const end = () => {
    remove();
    process.exit(1);
  };
  for (const name of SIGNALS) process.on(name, end);
  return () => {
    for (const name of SIGNALS) process.off(name, end);
  };
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { OperatorError } from "../base/errors.ts";
import { syncDirectory } from "../store/key-file.ts";

/**
 * Fills a data directory that does not exist yet or is empty. It is made under another name beside it, and gets its own once
 * `fill` is done; if that fails, or a signal ends the process, nothing is left.
 * @throws OperatorError if the directory is not empty
 */
export async function createDirectory<Result>(
  name: string,
  fill: (directory: string) => Promise<Result>,
): Promise<Result> {
  const target = resolve(name);
  requireEmpty(target);
  mkdirSync(dirname(target), { recursive: true });
  const beside = mkdtempSync(join(dirname(target), `.${basename(target)}.partial-`));
  const removeUnfinished = () => rmSync(beside, { recursive: true, force: true });
  const undoSignals = onInterruption(removeUnfinished);
  try {
    const result = await fill(beside);
    requireEmpty(target);
    renameSync(beside, target);
    syncDirectory(dirname(target));
    return result;
  } finally {
    removeUnfinished();
    undoSignals();
  }
}

function requireEmpty(directory: string): void {
  if (!existsSync(directory) || readdirSync(directory).length === 0) return;
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
  process.on("SIGINT", end);
  process.on("SIGTERM", end);
  return () => {
    process.off("SIGINT", end);
    process.off("SIGTERM", end);
  };
}

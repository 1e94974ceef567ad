import { type FileHandle, open, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { OperatorError } from "../base/errors.ts";
import { syncDirectory } from "../store/key-file.ts";

/** The output of a command. */
export interface OutputFile {
  /** @returns false if the reader has gone */
  write(bytes: Uint8Array): Promise<boolean>;
  /** Completes the output. */
  keep(): Promise<void>;
  /** Discards incomplete output. Never throws. */
  discard(): Promise<void>;
}

/**
 * An output file that appears under its name once it is completely on disk; `-` is standard output. Existing pipes
 * and devices are written to directly.
 * @throws OperatorError if it cannot be written
 */
export async function openOutputFile(path: string): Promise<OutputFile> {
  if (path === "-") return standardOutput();
  try {
    const target = await realpath(path).catch(() => path);
    const found = await stat(target).catch(() => undefined);
    if (found?.isDirectory()) throw new Error("it is a folder");
    if (found && !found.isFile()) return intoDevice(path, await open(target, "w"));
    const beside = join(dirname(target), `.${basename(target)}.${process.pid}.partial`);
    return plainFile(path, target, beside, await open(beside, "wx", 0o600));
  } catch (error) {
    throw unwritable(path, error);
  }
}

function plainFile(path: string, target: string, beside: string, file: FileHandle): OutputFile {
  return {
    write: (bytes) => append(path, file, bytes),
    async keep() {
      try {
        await file.sync();
        await file.close();
        await rename(beside, target);
        syncDirectory(dirname(target));
      } catch (error) {
        throw unwritable(path, error);
      }
    },
    async discard() {
      await file.close().catch(() => {});
      await rm(beside, { force: true }).catch(() => {});
    },
  };
}

function intoDevice(path: string, file: FileHandle): OutputFile {
  return {
    write: (bytes) => append(path, file, bytes),
    keep: () => file.close(),
    discard: () => file.close().catch(() => {}),
  };
}

async function append(path: string, file: FileHandle, bytes: Uint8Array): Promise<boolean> {
  try {
    await file.appendFile(bytes);
    return true;
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Waits for the reader, which may leave early, as `head` does. */
function standardOutput(): OutputFile {
  let isClosed = false;
  return {
    write(bytes) {
      if (isClosed) return Promise.resolve(false);
      return new Promise((resolve, reject) => {
        process.stdout.write(bytes, (error?: NodeJS.ErrnoException | null) => {
          isClosed = error?.code === "EPIPE";
          if (error && !isClosed) reject(unwritable("-", error));
          else resolve(!isClosed);
        });
      });
    },
    keep: async () => {},
    discard: async () => {},
  };
}

function unwritable(path: string, error: unknown): OperatorError {
  if (error instanceof OperatorError) return error;
  const where = path === "-" ? "standard output" : path;
  const why = error instanceof Error ? error.message : String(error);
  return new OperatorError(`${where} cannot be written: ${why}`, "name another file");
}

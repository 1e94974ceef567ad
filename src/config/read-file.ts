import { closeSync, openSync, readSync } from "node:fs";

/** Reads a whole file as text, with at most `limit` bytes. Throws like `node:fs`. */
export type ReadFile = (path: string, limit: number) => string;

/** The file exceeds the size limit. */
class FileTooLarge extends Error {
  override readonly name = "FileTooLarge";
}

/** Stops at the limit, so it returns even if the file is an endless device. Refuses text that is not UTF-8. */
export const readTextFile: ReadFile = (path, limit) => {
  const descriptor = openSync(path, "r");
  try {
    const bytes = new Uint8Array(limit + 1);
    let length = 0;
    while (length <= limit) {
      const count = readSync(descriptor, bytes, length, bytes.length - length, null);
      if (count === 0) break;
      length += count;
    }
    if (length > limit) throw new FileTooLarge();
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
  } finally {
    closeSync(descriptor);
  }
};

/** Why a file cannot be read, as a phrase to follow "the file …". Never contains the path or the content. */
export function readFailure(cause: unknown, limit: number): string {
  if (cause instanceof FileTooLarge) return `is larger than ${limit / 1024} KiB`;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  if (code === "EACCES" || code === "EPERM") return "cannot be read by this user";
  if (code === "EISDIR") return "is a directory";
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return "is not UTF-8 text";
  return typeof code === "string" ? `cannot be read (${code})` : "cannot be read";
}

/** Whether the error only means that the file does not exist. */
export function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR");
}

import { closeSync, openSync, readSync } from "node:fs";

/** Reads a whole file as text. Throws as `node:fs` does; `limit` is the most bytes it may have. */
export type ReadFile = (path: string, limit: number) => string;

/** More bytes than a file of its kind has. */
export class FileTooLarge extends Error {
  override readonly name = "FileTooLarge";
}

/** Reads no more than the limit, so that an endless device in place of a file ends too. Refuses what is not UTF-8. */
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

/** What keeps a file from being read, in words that finish "the file …". Never holds the path or the content. */
export function readFailure(cause: unknown, limit: number): string {
  if (cause instanceof FileTooLarge) return `is larger than ${limit / 1024} KiB`;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  if (code === "EACCES" || code === "EPERM") return "may not be read by this user";
  if (code === "EISDIR") return "is a directory";
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return "is not UTF-8 text";
  return typeof code === "string" ? `cannot be read (${code})` : "cannot be read";
}

/** True when the failure only says that there is no such file. */
export function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR");
}

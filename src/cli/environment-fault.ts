import { OperatorError } from "../base/errors.ts";
import { StoreUnavailable } from "../store/db.ts";
import { sqliteCode } from "../store/sqlite/connection.ts";

const MAKE_ROOM = "free some disk space, then try again";
const CHECK_ACCESS = "give this user read and write access, or choose another data directory with --data";

/** System errors caused by the environment rather than the program, in words, with advice. */
const SYSTEM_FAULTS: Readonly<Record<string, readonly [what: string, hint: string]>> = {
  EACCES: ["cannot be accessed by this user", CHECK_ACCESS],
  EPERM: ["cannot be changed by this user", CHECK_ACCESS],
  EROFS: [
    "is on a file system that is mounted read-only",
    "mount it for writing, or choose another data directory with --data",
  ],
  ENOSPC: ["cannot be written: the disk is full", MAKE_ROOM],
  EDQUOT: ["cannot be written: this user's disk quota is used up", MAKE_ROOM],
  EFBIG: [
    "cannot be written: the limit on the size of files is reached",
    "raise the limit on the size of files (ulimit -f)",
  ],
  EIO: ["cannot be read or written: the disk reports errors", "check the system's log and the disk's health"],
  EISDIR: ["is a directory where a file is needed", "move it away"],
  ENOTDIR: ["leads through something that is not a directory", "choose another path"],
  EEXIST: ["already exists", "move it away"],
  ELOOP: ["is a symbolic link that leads to itself", "choose another path"],
  ENAMETOOLONG: ["is too long for a path", "choose another path"],
  ENOENT: ["does not exist", "check the path"],
  EMFILE: [
    "cannot be opened: this process has no descriptors left",
    "raise the limit on open files (ulimit -n)",
  ],
  ENFILE: [
    "cannot be opened: the machine has no descriptors left",
    "end other programs, or raise fs.file-max",
  ],
  ENOMEM: ["cannot be used: the machine has no memory left", "free memory, or give the process more"],
};

const STORE_HINTS: readonly (readonly [code: RegExp, hint: string])[] = [
  [
    /^the database cannot be used|^all connections to the database/,
    "check that the database server runs, and that this machine can reach it",
  ],
  [/SQLITE_FULL|ENOSPC/, MAKE_ROOM],
  [/SQLITE_(BUSY|LOCKED)/, "another program has the database open: wait for it, or end it"],
  [
    /SQLITE_(CORRUPT|NOTADB)/,
    "run `gatehouse ledger verify`, which reports what is damaged, and restore the data directory from a backup",
  ],
];
const DAMAGED = /SQLITE_CORRUPT\w*/;

/** SQLite's errors for a schema that this program has not created. */
const OTHER_SCHEMA =
  /^(?:no such (?:table|column|index|trigger)|duplicate column name|(?:table|index|trigger|view) \S+ already exists|there is already|table \S+ has no column|cannot modify \S+ because it is a view)/;

/**
 * Converts a failure of the environment to an operator error. Undefined if the program itself is at fault, whose
 * stack is needed.
 */
export function environmentFault(error: unknown): OperatorError | undefined {
  const sqlite = sqliteCode(error);
  const [damage] = DAMAGED.exec(error instanceof StoreUnavailable ? error.message : sqlite) ?? [];
  if (damage !== undefined) {
    return new OperatorError(
      `a table or an index of the database is damaged, or another program has changed it (${damage})`,
      storeHint(damage),
    );
  }
  if (error instanceof StoreUnavailable) return new OperatorError(error.message, storeHint(error.message));
  if (error instanceof Error && sqlite !== "" && sqlite !== "SQLITE_ERROR") {
    return new OperatorError(`the store cannot be used: ${error.message} (${sqlite})`, storeHint(sqlite));
  }
  if (error instanceof Error && sqlite === "SQLITE_ERROR" && OTHER_SCHEMA.test(error.message)) {
    return new OperatorError(
      `the database does not have the schema that Gatehouse gave it: ${error.message}`,
      "restore the data directory from a backup; gatehouse ledger verify reports what was changed",
    );
  }
  return systemFault(error);
}

function storeHint(text: string): string {
  return (
    STORE_HINTS.find(([code]) => code.test(text))?.[1] ??
    "check that this user can write to it and that the disk has space"
  );
}

function systemFault(error: unknown): OperatorError | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error || "info" in error))
    return undefined;
  // Some Node functions wrap the system's error code in their own.
  const code = /\bE[A-Z]{2,}\b/.exec(`${String(error.code)} ${error.message}`)?.[0] ?? "";
  const [what, hint] = SYSTEM_FAULTS[code] ?? [];
  if (what === undefined) return undefined;
  return new OperatorError(`${pathOf(error) ?? "a file"} ${what} (${code})`, hint);
}

function pathOf(error: Error): string | undefined {
  if ("path" in error && typeof error.path === "string" && error.path !== "") return error.path;
  return / '?(\/[^']+?)'?$/.exec(error.message)?.[1];
}

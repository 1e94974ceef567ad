import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { environmentFault } from "../../src/cli/environment-fault.ts";
import { StoreUnavailable } from "../../src/store/db.ts";

/** An error like those of Bun's own functions. */
function systemError(code: string, path?: string): Error {
  return Object.assign(new Error(`${code}: of the system, write`), {
    code,
    syscall: "write",
    ...(path ? { path } : {}),
  });
}

test.each([
  [
    systemError("ENOSPC", "/d/server.json"),
    "/d/server.json cannot be written: the disk is full (ENOSPC)",
    /free some disk space/,
  ],
  [systemError("ENOSPC"), "a file cannot be written: the disk is full (ENOSPC)", /free some disk space/],
  [systemError("EROFS", "/d/x"), "/d/x is on a file system that is mounted read-only (EROFS)", /mount it/],
  [
    new StoreUnavailable("the store cannot be written (SQLITE_FULL)"),
    "the store cannot be written (SQLITE_FULL)",
    /free some disk space/,
  ],
  [
    new StoreUnavailable("the store cannot be written (SQLITE_CORRUPT_INDEX)"),
    "a table or an index of the database is damaged, or another program has changed it (SQLITE_CORRUPT_INDEX)",
    /gatehouse ledger verify/,
  ],
  [
    Object.assign(new Error("database disk image is malformed"), { code: "SQLITE_CORRUPT_VTAB" }),
    "a table or an index of the database is damaged, or another program has changed it (SQLITE_CORRUPT_VTAB)",
    /gatehouse ledger verify/,
  ],
])("%s is the machine's fault", (error, message, hint) => {
  const fault = environmentFault(error);
  expect(fault?.message).toBe(message);
  expect(fault?.hint).toMatch(hint);
  expect(fault?.exitCode).toBe(1);
});

test("a real system error is reported with its path", () => {
  let thrown: unknown;
  try {
    readFileSync("/nowhere/at/all");
  } catch (error) {
    thrown = error;
  }
  expect(environmentFault(thrown)?.message).toBe("/nowhere/at/all does not exist (ENOENT)");
});

test.each([[new TypeError("x is not a function")], [systemError("EWHAT")], [new Error("EIO")], ["text"]])(
  "%s is the program's own fault, and keeps its stack",
  (error) => {
    expect(environmentFault(error)).toBeUndefined();
  },
);

test.each([
  "no such table: ledger",
  "duplicate column name: definition_hash",
  "table ledger_heads already exists",
  "cannot modify ledger because it is a view",
])("a database with a changed schema is reported in one line: %s", (message) => {
  const fault = environmentFault(Object.assign(new Error(message), { code: "SQLITE_ERROR" }));
  expect(fault?.message).toBe(`the database does not have the schema that Gatehouse gave it: ${message}`);
  expect(fault?.hint).toMatch(/backup/);
});

test("a mistake in a statement of ours keeps its stack", () => {
  const error = Object.assign(new Error('near "SELEC": syntax error'), { code: "SQLITE_ERROR" });
  expect(environmentFault(error)).toBeUndefined();
});

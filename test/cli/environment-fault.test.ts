import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { environmentFault } from "../../src/cli/environment-fault.ts";
import { StoreUnavailable } from "../../src/store/db.ts";

/** As Bun's own functions throw it. */
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
    /make room/,
  ],
  [systemError("ENOSPC"), "a file cannot be written: the disk is full (ENOSPC)", /make room/],
  [systemError("EROFS", "/d/x"), "/d/x is on a file system that is mounted read-only (EROFS)", /mount it/],
  [
    new StoreUnavailable("the store cannot be written (SQLITE_FULL)"),
    "the store cannot be written (SQLITE_FULL)",
    /room/,
  ],
])("%s is the machine's fault", (error, message, hint) => {
  const fault = environmentFault(error);
  expect(fault?.message).toBe(message);
  expect(fault?.hint).toMatch(hint);
  expect(fault?.exitCode).toBe(1);
});

test("a real error of the system is told with its path", () => {
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

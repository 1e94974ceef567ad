import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/base/errors.ts";
import { prepareDirectory } from "../../src/store/directory.ts";
import { type DirectoryLock, lockDirectory } from "../../src/store/lock.ts";
import { readRuntime, removeRuntime, writeRuntime } from "../../src/store/runtime.ts";
import { firstLine, tempDir } from "../support/process.ts";

let directory: ReturnType<typeof tempDir>;

beforeEach(() => {
  directory = tempDir();
});

afterEach(() => directory.remove());

/** Starts another process that tries to take the lock, reports the result, and then only holds it. */
async function holder(): Promise<{ got: string; kill(): Promise<void> }> {
  const module = join(import.meta.dir, "../../src/store/lock.ts");
  const code = `import { lockDirectory } from ${JSON.stringify(module)};
    const got = lockDirectory(${JSON.stringify(directory.path)}) ? "locked" : "refused";
    // A lock belongs to the process, even if nothing refers to it any more.
    for (let turn = 0; turn < 5; turn++) {
      Bun.gc(true);
      await Bun.sleep(1);
    }
    console.log(got);
    setInterval(() => {}, 1000);`;
  const child = Bun.spawn([process.execPath, "-e", code], { stdout: "pipe", stderr: "inherit" });
  return {
    got: await firstLine(child.stdout),
    async kill() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** On a busy machine, a killed process releases its locks a moment later. */
async function lockOnceFree(): Promise<DirectoryLock> {
  for (;;) {
    const lock = lockDirectory(directory.path);
    if (lock !== null) return lock;
    await Bun.sleep(5);
  }
}

describe("the lock of a data directory", () => {
  test("is refused to a second process, and is free as soon as its holder is killed", async () => {
    const first = await holder();
    expect(first.got).toBe("locked");
    expect(lockDirectory(directory.path)).toBeNull();
    await first.kill();
    const mine = await lockOnceFree();
    const second = await holder();
    expect(second.got).toBe("refused");
    await second.kill();
    mine.release();
  });

  test("is refused to a second holder in one process, and returned by the first", () => {
    const first = lockDirectory(directory.path);
    expect(lockDirectory(directory.path)).toBeNull();
    // The refused attempt opened and closed the file, which must not have released the lock.
    expect(lockDirectory(directory.path)).toBeNull();
    first?.release();
    const second = lockDirectory(directory.path);
    expect(second).not.toBeNull();
    second?.release();
  });

  test.each([
    ["if its file cannot be created", "cannot be written", (file: string) => mkdirSync(file)],
    [
      "if its file is something else",
      "is not a Gatehouse lock file",
      (file: string) => writeFileSync(file, "x".repeat(9_999)),
    ],
  ])("says what to do %s", (_, words, make) => {
    make(join(directory.path, "gatehouse.lock"));
    const message = () => lockDirectory(directory.path);
    expect(message).toThrow(OperatorError);
    expect(message).toThrow(words);
  });
});

describe("the data directory", () => {
  test("that cannot be created is reported to the operator", () => {
    writeFileSync(join(directory.path, "file"), "");
    expect(() => prepareDirectory(join(directory.path, "file", "data"))).toThrow(OperatorError);
  });

  test("that is created belongs only to its owner, and so do its parents; an existing one is unchanged", () => {
    const made = join(directory.path, "a", "b");
    prepareDirectory(made);
    expect(statSync(made).mode & 0o777).toBe(0o700);
    const there = join(directory.path, "there");
    mkdirSync(there, { mode: 0o750 });
    prepareDirectory(there);
    expect(statSync(there).mode & 0o777).toBe(0o750);
  });
});

describe("the file that the running server leaves for the command line", () => {
  const RUNTIME = { pid: 7, url: "http://127.0.0.1:1", secret: "gth_x" };

  test.each([
    ["nothing there", undefined],
    ["half a file", '{"pid":7,"url":"htt'],
    ["another form", '{"pid":"7"}'],
    ["an empty file", ""],
  ])("counts as missing if there is %s", (_, text) => {
    if (text !== undefined) writeFileSync(join(directory.path, "server.json"), text);
    expect(readRuntime(directory.path)).toBeNull();
  });

  test("is read as it was written, only by its owner, until it is removed", () => {
    writeRuntime(directory.path, { ...RUNTIME, pid: 6 });
    writeRuntime(directory.path, RUNTIME);
    expect(readRuntime(directory.path)).toEqual(RUNTIME);
    expect(statSync(join(directory.path, "server.json")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(directory.path, "server.json"), "utf8")).toContain('"pid":7');
    removeRuntime(directory.path);
    removeRuntime(directory.path);
    expect(readRuntime(directory.path)).toBeNull();
  });
});

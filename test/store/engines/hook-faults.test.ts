/** A hook that throws: the commit counts all the same, for its own transaction and for those beside it. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { run, tempDir } from "../../support/process.ts";
import { engines } from "./engines.ts";

const PROGRAM = [process.execPath, "--no-env-file", join(import.meta.dir, "hook-fault-program.ts")];

describe.each(engines())("on %s", (_, engine) => {
  // The program's home as well: Bun keeps a cache there.
  const home = tempDir();
  afterAll(async () => {
    await engine.remove();
    home.remove();
  });

  test.skipIf(engine.missing !== undefined)("a hook that throws affects nobody who waits", async () => {
    const { stdout, stderr, code } = await run([await engine.place()], {
      program: PROGRAM,
      cwd: home.path,
    });
    expect([code, stderr]).toEqual([0, ""]);
    const told = JSON.parse(stdout) as string[];
    const rest = ["bystander", "committed", "second", "uncaught: first", "uncaught: undoing", "undone"];
    expect(told.toSorted()).toEqual(["Error: refused", ...rest, "committed"].toSorted());
  });
});

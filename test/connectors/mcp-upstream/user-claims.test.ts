/** Users of programs belong to one gateway on the machine at a time. */
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { UserClaims } from "../../../src/connectors/mcp-upstream/stdio/user-claims.ts";
import { directory } from "./programs.ts";

/** Another process that has tried to claim the user. */
async function claimElsewhere(path: string, uid: number) {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/claiming.ts`, path, String(uid)], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  return {
    has: new TextDecoder().decode(value) === "true",
    async kill() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

describe("a user", () => {
  test("is claimed by one process until that process ends, however it ends", async () => {
    using shared = directory(0o755);
    const claims = new UserClaims([shared.path]);
    const other = await claimElsewhere(shared.path, 60_706);
    expect([other.has, claims.claim(60_706), claims.claim(60_707)]).toEqual([true, false, true]);
    await other.kill();
    expect(claims.claim(60_706)).toBe(true);
    const late = await claimElsewhere(shared.path, 60_706);
    expect(late.has).toBe(false);
    await late.kill();
    claims.release(60_706);
    const last = await claimElsewhere(shared.path, 60_706);
    expect(last.has).toBe(true);
    await last.kill();
    claims.release(60_707);
  });

  test("is claimed only once, even within one process", () => {
    using shared = directory(0o755);
    const claims = [new UserClaims([shared.path]), new UserClaims([shared.path])];
    expect(claims.map((each) => each.claim(60_706))).toEqual([true, false]);
    expect(claims[0]?.claim(60_706)).toBe(false);
    claims[0]?.release(60_706);
    expect(claims.map((each) => each.claim(60_706)).toReversed()).toEqual([false, true]);
    claims[0]?.release(60_706);
  });
});

describe("the directory of claims", () => {
  test("is the first usable one, and only its owner can change it", () => {
    using shared = directory(0o755);
    const claims = new UserClaims([join(shared.path, "missing"), shared.path]);
    expect(claims.claim(60_706)).toBe(true);
    expect(statSync(join(shared.path, "gatehouse-users")).mode & 0o777).toBe(0o700);
    claims.release(60_706);
  });

  test.each<readonly [string, (path: string) => void]>([
    [
      "if others can write to it",
      (path) => {
        mkdirSync(path);
        chmodSync(path, 0o777);
      },
    ],
    ["if it is a link", (path) => symlinkSync("/tmp", path)],
  ])("is not used %s", (_, make) => {
    using shared = directory(0o1777);
    make(join(shared.path, "gatehouse-users"));
    expect(() => new UserClaims([shared.path]).claim(60_706)).toThrow("can hold the claims of users");
  });
});

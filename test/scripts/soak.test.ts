import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseOptions } from "../../scripts/soaking/options.ts";
import { lockDirectory } from "../../src/store/lock.ts";
import { tempDir } from "../support/process.ts";

setDefaultTimeout(60_000);

const SCRIPT = join(import.meta.dir, "..", "..", "scripts", "soak");
const seed = () => 7;

async function run(...args: string[]) {
  const child = Bun.spawn(["bash", SCRIPT, ...args], { stdio: ["ignore", "pipe", "pipe"], env: process.env });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, code };
}

describe("scripts/soak", () => {
  test("with wrong arguments prints what is wrong and its usage, and kills nothing", async () => {
    const { code, stdout, stderr } = await run("--kills", "none");
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toStartWith("--kills takes 1 to 100000\n\nUsage: scripts/soak");
  });

  test("--help prints its usage", async () => {
    const { code, stdout, stderr } = await run("--kills", "5", "--help");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toStartWith("Usage: scripts/soak");
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("%s while its server starts leaves no server running", async (signal, expected) => {
    const { path, remove } = tempDir();
    const child = Bun.spawn(["bash", SCRIPT, "--kills", "1"], {
      stdio: ["ignore", "ignore", "ignore"],
      env: { ...process.env, TMPDIR: path },
      // A separate process group, so this test can end everything that it finds running.
      detached: true,
    });
    try {
      const data = () =>
        readdirSync(path)
          .map((name) => join(path, name, "gatehouse-data"))
          .find((each) => existsSync(each));
      // The file is created by a server that has locked the directory and is not ready yet.
      while (!existsSync(join(data() ?? path, "gatehouse.db"))) await Bun.sleep(5);
      child.kill(signal);
      expect(await child.exited).toBe(expected);
      const lock = lockDirectory(data() ?? "");
      expect(lock).not.toBeNull();
      lock?.release();
    } finally {
      endGroup(child.pid);
      remove();
    }
  });
});

function endGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch (error) {
    // No process of the group is left.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

describe("the options", () => {
  test.each([
    [["--kills"], "--kills takes 1 to 100000"],
    [["--kills", "0"], "--kills takes 1 to 100000"],
    [["--kills", "1e3"], "--kills takes 1 to 100000"],
    [["--kills", "100001"], "--kills takes 1 to 100000"],
    [["--seconds", "-1"], "--seconds takes 1 to 86400"],
    [["--seconds", "1.5"], "--seconds takes 1 to 86400"],
    [["--seed", "4294967296"], "--seed takes 0 to 4294967295"],
    [["--seed", ""], "--seed takes 0 to 4294967295"],
    [["--nodes", "1"], "--nodes takes 2 to 8"],
    [["--fault", "fire"], "--fault takes kill, stop, terminate, postgres, clocks or all"],
    [["--fast"], "there is no option --fast"],
    [["200"], "there is nothing to do with 200"],
  ])("%j: %s", (args, problem) => {
    expect(parseOptions(args, seed)).toBe(problem);
  });

  test.each([
    [[], { kills: 200, seconds: null, seed: 7, binary: false, nodes: null, fault: "kill" as const }],
    [
      ["--seed", "0", "--binary"],
      { kills: 200, seconds: null, seed: 0, binary: true, nodes: null, fault: "kill" as const },
    ],
    [
      ["--nodes", "3", "--fault", "all"],
      { kills: 200, seconds: null, seed: 7, binary: false, nodes: 3, fault: "all" as const },
    ],
    [
      ["--kills", "3", "--seconds", "60"],
      { kills: 3, seconds: 60, seed: 7, binary: false, nodes: null, fault: "kill" as const },
    ],
  ])("%j are accepted", (args, options) => {
    expect(parseOptions(args, seed)).toEqual(options);
  });
});

/** What a connector's program leaves behind, and what another connector's program could do with it. */
import { afterEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { KernelObjects } from "../../../src/connectors/mcp-upstream/stdio/kernel-objects.ts";
import { processesOf } from "../../../src/connectors/mcp-upstream/stdio/processes.ts";
import { ProgramHomes } from "../../../src/connectors/mcp-upstream/stdio/program-homes.ts";
import { UserClaims } from "../../../src/connectors/mcp-upstream/stdio/user-claims.ts";
import { until } from "../../support/until.ts";
import { anotherGateway, closeUsers, directory, openUsers, type TestDirectory, wordsOf } from "./programs.ts";
import { open, quickClock, runs } from "./support.ts";

afterEach(closeUsers);

const isRoot = process.geteuid?.() === 0;
/** Sleeps in a separate session and prints its pid. */
const DAEMON = "setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' & sleep 0.3";

/** A directory that all users may write to, and that nobody searches for leftovers of programs. */
function hiddenDirectory(): TestDirectory {
  const parent = directory(0o755);
  const path = join(parent.path, "drop");
  mkdirSync(path);
  chmodSync(path, 0o1777);
  return { path, [Symbol.dispose]: () => parent[Symbol.dispose]() };
}

describe.skipIf(!isRoot)("a connector's program", () => {
  test("cannot read another one's data through a setuid file that it left", async () => {
    using data = directory();
    using drop = hiddenDirectory();
    const pool = openUsers(data.path);
    await wordsOf(
      `cd ${drop.path}; umask 077; echo secret > secret; cp /bin/cat cat; chmod 6755 cat; ls -l`,
      pool.usersOf(1),
    );
    const { mode, uid } = statSync(join(drop.path, "cat"));
    expect(mode & 0o6000).toBe(0o6000);
    // If other tests had the first user of connector 1, it ran as the next one, which is the first of connector 2.
    const claims = new UserClaims();
    claims.claim(uid);
    const words = await wordsOf(
      `cd ${drop.path}; ./cat secret; grep NoNewPrivs /proc/self/status`,
      pool.usersOf(2),
    );
    expect(words).toContain("Permission denied");
    expect(words).toEndWith("NoNewPrivs:\t1");
    expect(words).not.toMatch(/^secret$/m);
    claims.release(uid);
    await pool.close();
  });

  test("runs as the same user after a restart if no other gateway has it", async () => {
    async function userAfter(dataDir: string): Promise<number> {
      const pool = openUsers(dataDir);
      const { uid, release } = await pool.usersOf(1).take();
      await release();
      await pool.close();
      return uid;
    }
    // Other tests may have the user at one of the two times.
    await until(async () => {
      using data = directory();
      const before = await userAfter(data.path);
      return (await userAfter(data.path)) === before;
    });
  });

  test("never runs as the user of another connector's program", async () => {
    using data = directory();
    const pool = openUsers(data.path);
    const users = [await pool.usersOf(1).take(), await pool.usersOf(2).take(), await pool.usersOf(3).take()];
    expect(new Set(users.map(({ uid }) => uid)).size).toBe(3);
    expect(Number(await wordsOf("id -u", pool.usersOf(4)))).not.toBeOneOf(users.map(({ uid }) => uid));
    for (const user of users) await user.release();
    await pool.close();
  });

  test("leaves no process behind, not even one in a separate session whose parent has ended", async () => {
    using data = directory();
    const pool = openUsers(data.path);
    const [uid, daemon] = (await wordsOf(`id -u; ${DAEMON}`, pool.usersOf(1))).split("\n").map(Number);
    expect(daemon).toBeGreaterThan(1);
    expect(processesOf(uid ?? 0)).toEqual([]);
    expect(runs(daemon ?? 0)).toBe(false);
    await pool.close();
  });

  test.skipIf(!Bun.which("perl"))(
    "leaves no process behind that keeps forking while its parent ends",
    async () => {
      using data = directory();
      using drop = hiddenDirectory();
      const pool = openUsers(data.path);
      const mark = join(drop.path, "mark");
      const lines = () => (existsSync(mark) ? readFileSync(mark, "utf8").length : 0);
      // The deadline is for a failing test. A shell forks too slowly to slip past a list of processes.
      const hopper = `$end = time + 10; open F, ">>", "${mark}"; while (time < $end) { exit if fork; syswrite F, "x" }`;
      const script = `id -u; setsid perl -e '${hopper}' >/dev/null 2>&1 & sleep 0.3`;
      const uid = Number(await wordsOf(script, pool.usersOf(1)));
      const before = lines();
      expect(before).toBeGreaterThan(10);
      await Bun.sleep(300);
      expect([lines(), processesOf(uid)]).toEqual([before, []]);
      await pool.close();
    },
  );

  test("leaves no file in the directories that all users share", async () => {
    using data = directory();
    const pool = openUsers(data.path);
    const shared = ["/tmp", "/var/tmp", "/dev/shm"].filter((path) => existsSync(path));
    const script = shared.map(
      (path) => `mkdir -p ${path}/left-$(id -u)/deep; touch ${path}/left-file-$(id -u)`,
    );
    const uid = Number(await wordsOf(`${script.join("; ")}; id -u`, pool.usersOf(1)));
    const left = shared.flatMap((path) => readdirSync(path).filter((name) => name.endsWith(`-${uid}`)));
    expect(left).toEqual([]);
    await pool.close();
  });

  test("is not assigned a user that still has a file or a home", async () => {
    using data = directory();
    const pool = openUsers(data.path);
    const first = await pool.usersOf(1).take();
    await first.release();
    const file = `/var/tmp/gatehouse-test-${first.uid}`;
    writeFileSync(file, "");
    chownSync(file, first.uid, first.uid);
    const home = new ProgramHomes("/another gateway").make(first.uid + 1, first.uid + 1);
    try {
      const taken = await pool.usersOf(1).take();
      expect([first.uid, first.uid + 1]).not.toContain(taken.uid);
      await taken.release();
    } finally {
      rmSync(file);
      rmSync(join(home, ".."), { recursive: true });
    }
    await pool.close();
  });

  test("of a gateway that was killed is ended by the next start, with its home", async () => {
    using data = directory();
    const { uid, home, kill } = await anotherGateway(data.path);
    const left = Bun.spawn(["/usr/bin/setsid", "/bin/sleep", "600"], { uid, gid: uid } as object);
    await kill();
    const after = openUsers(data.path);
    const next = await after.usersOf(1).take();
    expect([next.uid, existsSync(home)]).toEqual([uid, false]);
    await left.exited;
    expect(left.signalCode).toBe("SIGKILL");
    await next.release();
    await after.close();
  });

  test("never runs as a user that another gateway on the machine has for its programs", async () => {
    using data = directory();
    const { uid, home, kill } = await anotherGateway(data.path);
    // As if the other one had a home elsewhere, in a temporary directory of its own.
    renameSync(home, `${data.path}/home`);
    const pool = openUsers(data.path);
    const taken = await pool.usersOf(1).take();
    expect(taken.uid).not.toBe(uid);
    await taken.release();
    await kill();
    await pool.close();
  });

  test("leaves no file in world-writable directories inside shared directories", async () => {
    using data = directory();
    using drop = directory(0o1777);
    const pool = openUsers(data.path);
    // Its owner cannot read it.
    const script = `cd ${drop.path}; mkdir -p deep/er; touch deep/er/file file; chmod 0 deep/er deep; ls`;
    expect(await wordsOf(script, pool.usersOf(1))).toBe("deep\nfile");
    expect(readdirSync(drop.path)).toEqual([]);
    await pool.close();
  });

  test("cannot have others' files removed by leaving a link", async () => {
    using data = directory();
    using kept = directory(0o755);
    using drop = directory(0o1777);
    const pool = openUsers(data.path);
    writeFileSync(join(kept.path, "file"), "");
    await wordsOf(
      `cd ${drop.path}; ln -s ${kept.path} link; mkdir d; ln -s ${kept.path} d/link`,
      pool.usersOf(1),
    );
    expect([readdirSync(drop.path), readdirSync(kept.path)]).toEqual([[], ["file"]]);
    await pool.close();
  });

  test.skipIf(!Bun.which("ipcmk"))(
    "leaves no System V shared memory, message queue or semaphore",
    async () => {
      using data = directory();
      const pool = openUsers(data.path);
      const ipcs = () =>
        ["shm", "msg", "sem"].map((kind) => readFileSync(`/proc/sysvipc/${kind}`, "utf8")).join();
      const words = await wordsOf("ipcmk -M 4096 -p 666; ipcmk -Q; ipcmk -S 1; id -u", pool.usersOf(1));
      const uid = words.split("\n").at(-1) ?? "";
      expect(words.match(/id: \d+/g)).toHaveLength(3);
      expect(ipcs()).not.toMatch(new RegExp(`\\s${uid}\\s`));
      await pool.close();
    },
  );

  test.skipIf(!Bun.which("ipcmk"))("is not assigned a user whose kernel objects remain", async () => {
    using data = directory();
    const pool = openUsers(data.path);
    const first = await pool.usersOf(1).take();
    await first.release();
    const { uid } = first;
    Bun.spawnSync(["ipcmk", "-M", "4096"], { uid, gid: uid } as object);
    try {
      const taken = await pool.usersOf(1).take();
      expect(taken.uid).not.toBe(uid);
      await taken.release();
    } finally {
      await new KernelObjects().removeOf(uid);
    }
    expect(new KernelObjects().owners()).not.toContain(uid);
    await pool.close();
  });

  test.skipIf(!Bun.which("prlimit"))(
    "can create no POSIX message queue, which nobody would find",
    async () => {
      using data = directory();
      const pool = openUsers(data.path);
      expect(await wordsOf("grep -i msgqueue /proc/self/limits", pool.usersOf(1))).toMatch(
        /queue size +0 +0 /,
      );
      await pool.close();
    },
  );
});

/** As if the server did not run as root: its user also has processes that are not programs of connectors. */
test("a program of the server's user leaves no descendant behind, even one that left its group", async () => {
  const transport = {
    type: "stdio",
    command: "/bin/sh",
    args: ["-c", `exec >&2; ${DAEMON}; wait`],
    env: {},
  } as const;
  await using up = open(transport, { programUsers: null, clock: quickClock });
  void up.list().catch(() => {});
  const { fields } = await up.logs(({ fields }) => /^\d+$/.test(String(fields.line)));
  const daemon = Number(fields.line);
  expect(runs(daemon)).toBe(true);
  await up.source.close();
  expect(runs(daemon)).toBe(false);
});

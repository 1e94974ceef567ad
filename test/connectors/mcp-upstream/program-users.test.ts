/** Which users connectors' programs run as, and what they can reach of the server. */
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { parsePasswd } from "../../../src/connectors/mcp-upstream/stdio/passwd.ts";
import { ProgramHomes } from "../../../src/connectors/mcp-upstream/stdio/program-homes.ts";
import { openProgramUsers } from "../../../src/connectors/mcp-upstream/stdio/program-users.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { fileStore } from "../../support/lasting-store.ts";
import { closeUsers, directory, openUsers, wordsOf } from "./programs.ts";
import { faultOf, open } from "./support.ts";

afterEach(closeUsers);

const isRoot = process.geteuid?.() === 0;
const NOBODY = parsePasswd(await Bun.file("/etc/passwd").text()).find(({ name }) => name === "nobody");

describe.skipIf(!isRoot)("if the server runs as root, a program", () => {
  const users = (dataDir: string, stdioUser?: string) => openUsers(dataDir, stdioUser).usersOf(1);

  test("runs as a user of its own, without groups and without root's capabilities", async () => {
    using data = directory();
    const words = await wordsOf(
      "id -u; id -G; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status",
      users(data.path),
    );
    const [uid = "", groups, ...capabilities] = words.split("\n");
    expect(Number(uid)).toBeWithin(60_706, 61_184);
    expect(groups).toBe(uid);
    expect(capabilities.map((line) => line.split("\t")[1])).toEqual(Array(4).fill("0".repeat(16)));
  });

  test("runs as a different user from every other program", async () => {
    using data = directory();
    const given = users(data.path);
    const words = await Promise.all([1, 2, 3].map(() => wordsOf("id -u", given)));
    expect(new Set(words).size).toBe(3);
  });

  test("never runs as a user that already has a process on the machine", async () => {
    using data = directory();
    const first = await users(data.path).take();
    await first.release();
    const left = Bun.spawn(["/bin/sleep", "60"], { uid: first.uid, gid: first.gid } as object);
    try {
      const given = users(data.path);
      const taken = await Promise.all([1, 2, 3].map(() => given.take()));
      const uids = new Set(taken.map((user) => user.uid));
      expect(uids.size).toBe(3);
      expect(uids).not.toContain(first.uid);
      for (const user of taken) await user.release();
    } finally {
      left.kill("SIGKILL");
      await left.exited;
    }
  });

  test("has a home that only it can read, starts there, and leaves nothing behind", async () => {
    using data = directory();
    const script = 'pwd; stat -c %a "$HOME"; echo x > "$HOME/file" && cat file; ls "$HOME/.."';
    const words = (await wordsOf(script, users(data.path))).split("\n");
    expect(words.slice(1, 3)).toEqual(["700", "x"]);
    expect(words[3]).toContain("Permission denied");
    expect(existsSync(words[0] ?? "/")).toBe(false);
  });

  test("is started even if others may list the data directory, as long as they can open nothing in it", async () => {
    using data = directory(0o705);
    writeFileSync(join(data.path, "gatehouse.db"), "", { mode: 0o600 });
    expect(await wordsOf("echo started", users(data.path))).toBe("started");
  });

  test("is not started while its user could read a file of the data directory", async () => {
    using data = directory(0o705);
    writeFileSync(join(data.path, "gatehouse.yaml"), "", { mode: 0o644 });
    const transport = { type: "stdio", command: "/bin/sh", args: ["-c", "id"], env: {} } as const;
    await using up = open(transport, { programUsers: users(data.path) });
    expect(await faultOf(up.list())).toStartWith(
      "unavailable: No program is started, because its user could read gatehouse.yaml",
    );
    expect(up.logged.map(({ message }) => message)).not.toContain("a connector's program ended");
  });

  test("is not started, and reports why, if its home cannot be created", async () => {
    using data = directory();
    using temporary = directory();
    const before = process.env.TMPDIR;
    process.env.TMPDIR = join(temporary.path, "file");
    await Bun.write(process.env.TMPDIR, "");
    try {
      const transport = { type: "stdio", command: "/bin/sh", args: ["-c", "id"], env: {} } as const;
      await using up = open(transport, { programUsers: users(data.path) });
      expect(await faultOf(up.list())).toMatch(
        /^unavailable: No program is started: its home .* cannot be created: E/,
      );
    } finally {
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
    }
  });

  test.skipIf(!NOBODY)("runs as the user that connectors.stdio_user names, by name or number", async () => {
    using data = directory();
    for (const name of ["nobody", String(NOBODY?.uid)]) {
      const words = await wordsOf("id -u; id -G", users(data.path, name));
      expect(words).toBe(`${NOBODY?.uid}\n${NOBODY?.gid}`);
    }
  });

  test("runs as a number that /etc/passwd does not list, with a home made for it", async () => {
    using data = directory();
    const words = await wordsOf('id -u; stat -c %u "$HOME"', users(data.path, "59999"));
    expect(words).toBe("59999\n59999");
  });

  test.each(["root", "0"])("does not run as %s", (name) => {
    using data = directory();
    expect(() => users(data.path, name)).toThrow(
      "connectors.stdio_user is root, who could read all files of the server",
    );
  });

  test("does not run as an unknown user", () => {
    using data = directory();
    expect(() => users(data.path, "nobody-of-this-name")).toThrow("not listed in /etc/passwd");
  });

  test("that its user may not execute is refused, with advice", async () => {
    using data = directory();
    using tools = directory();
    await Bun.write(join(tools.path, "tool"), "#!/bin/sh\n");
    const transport = { type: "stdio", command: join(tools.path, "tool"), args: [], env: {} } as const;
    await using up = open(transport, { programUsers: users(data.path) });
    expect(await faultOf(up.list())).toMatch(/EACCES.*who must be able to read and execute it/);
  });

  describe("finds on the server", () => {
    async function looks(gateway: TestGateway, script: string): Promise<string> {
      const { body } = await gateway.call("POST", "/v1/connectors", {
        body: {
          name: "sh",
          kind: "mcp",
          transport: { type: "stdio", command: "/bin/sh", args: ["-c", `exec >&2; ${script}`] },
        },
      });
      return body.error;
    }

    test("no file of its data directory, and not its memory, environment or descriptors", async () => {
      // With a database in the directory.
      const store = fileStore();
      const gateway = await startGateway(store.options);
      try {
        const { dataDir } = gateway;
        const proc = `/proc/${process.pid}`;
        const files = readdirSync(dataDir).map((name) => join(dataDir, name));
        expect(files.length).toBeGreaterThan(3);
        const paths = [...files, `${proc}/environ`, `${proc}/mem`, `${proc}/fd/0`].join(" ");
        const words = await looks(
          gateway,
          `for each in ${paths}; do head -c 1 "$each" >/dev/null 2>&1 && echo "read $each"; done; ls ${dataDir}; ls ${proc}/fd; echo descriptors /proc/self/fd/*`,
        );
        expect(words).not.toContain("read ");
        expect(words.match(/Permission denied/g)).toHaveLength(2);
        // Descriptor 3 is the folder that the shell opens for the listing.
        expect(words).toMatch(/descriptors (\/proc\/self\/fd\/[0123] ?)+$/);
      } finally {
        await gateway.stop();
        await store.remove();
      }
    });
  });
});

describe("if the server does not run as root", () => {
  test("a program runs as the server's user", () => {
    using data = directory();
    const parts = { dataDir: data.path, ownUid: 1_000, clock: systemClock, log: silentLog };
    expect(openProgramUsers({ ...parts, stdioUser: undefined })).toBeNull();
    expect(openProgramUsers({ ...parts, stdioUser: "1000" })).toBeNull();
  });

  test("choosing another user is impossible, and the start reports it", () => {
    using data = directory();
    const parts = { dataDir: data.path, ownUid: 1_000, clock: systemClock, log: silentLog };
    const opening = () => openProgramUsers({ ...parts, stdioUser: "1001" });
    expect(opening).toThrow("only a server that runs as root can start programs as another user");
  });
});

describe("homes", () => {
  const uid = process.geteuid?.() ?? 0;
  const gid = process.getegid?.() ?? 0;

  test("that a killed process left are distinguished from those of other gateways", () => {
    using temporary = directory();
    const left = new ProgramHomes("/data", temporary.path).make(uid, gid);
    const other = new ProgramHomes("/other", temporary.path).make(uid, gid);
    const homes = new ProgramHomes("/data", temporary.path);
    expect(homes.left()).toEqual([{ path: left, uid }]);
    expect(homes.owners()).toEqual(new Set([uid]));
    const made = homes.make(uid, gid);
    expect(statSync(made).mode & 0o777).toBe(0o700);
    homes.close();
    expect([left, other, made].map((path) => existsSync(path))).toEqual([true, true, true]);
  });

  test("are created even if somebody has taken every name that can be guessed", () => {
    using temporary = directory();
    const parent = join(new ProgramHomes("/data", temporary.path).make(uid, gid), "..");
    const guessed = parent.slice(0, parent.lastIndexOf("-"));
    symlinkSync("/tmp", guessed);
    const homes = new ProgramHomes("/data", temporary.path);
    expect(homes.left()).toHaveLength(1);
    const home = homes.make(uid, gid);
    expect(join(home, "..")).not.toBe(guessed);
  });

  test("are created again after a cleaner of old files has removed the directory", () => {
    using temporary = directory();
    const homes = new ProgramHomes("/data", temporary.path);
    rmSync(join(homes.make(uid, gid), ".."), { recursive: true });
    expect(existsSync(homes.make(uid, gid))).toBe(true);
  });
});

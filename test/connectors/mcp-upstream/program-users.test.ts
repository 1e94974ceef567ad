/** Who connectors' programs run as, and what they can reach of the server. */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parsePasswd } from "../../../src/connectors/mcp-upstream/stdio/passwd.ts";
import { ProgramHomes } from "../../../src/connectors/mcp-upstream/stdio/program-home.ts";
import {
  openProgramUsers,
  type ProgramUsers,
} from "../../../src/connectors/mcp-upstream/stdio/program-users.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { faultOf, open } from "./support.ts";

const isRoot = process.geteuid?.() === 0;
const NOBODY = parsePasswd(await Bun.file("/etc/passwd").text()).find(({ name }) => name === "nobody");

interface Place extends Disposable {
  readonly path: string;
}

function directory(mode = 0o700): Place {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  chmodSync(path, mode);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** What a shell writes that a connector starts. */
async function wordsOf(script: string, programUsers: ProgramUsers | null): Promise<string> {
  const transport = {
    type: "stdio",
    command: "/bin/sh",
    args: ["-c", `exec >&2; ${script}`],
    env: {},
  } as const;
  await using up = open(transport, { programUsers });
  await faultOf(up.list());
  const { fields } = await up.logs(({ message }) => message === "a connector's program ended");
  return String(fields.output ?? "");
}

describe.skipIf(!isRoot)("where the server runs as root, a program", () => {
  const users = (dataDir: string, stdioUser?: string) => openProgramUsers({ dataDir, stdioUser });

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

  test("runs as another user than every other program", async () => {
    using data = directory();
    const given = users(data.path);
    const words = await Promise.all([1, 2, 3].map(() => wordsOf("id -u", given)));
    expect(new Set(words).size).toBe(3);
  });

  test("never runs as a user that a process of the machine runs as already", async () => {
    using data = directory();
    const left = Bun.spawn(["/bin/sleep", "60"], { uid: 60_706, gid: 60_706 } as object);
    try {
      const given = users(data.path);
      const taken = await Promise.all([1, 2, 3].map(() => given?.take()));
      const uids = new Set(taken.map((user) => user?.uid));
      expect(uids.size).toBe(3);
      expect(uids).not.toContain(60_706);
      for (const user of taken) await user?.release();
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
    expect(existsSync(join(words[0] ?? "/", ".."))).toBe(false);
  });

  test("is started though others may list the data directory, as long as nothing in it is open to them", async () => {
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
      "unavailable: No program is started while its user could read gatehouse.yaml",
    );
    expect(up.logged.map(({ message }) => message)).not.toContain("a connector's program ended");
  });

  test("is not started, and says why, if its home cannot be made", async () => {
    using data = directory();
    using temporary = directory();
    const before = process.env.TMPDIR;
    process.env.TMPDIR = join(temporary.path, "file");
    await Bun.write(process.env.TMPDIR, "");
    try {
      const transport = { type: "stdio", command: "/bin/sh", args: ["-c", "id"], env: {} } as const;
      await using up = open(transport, { programUsers: users(data.path) });
      expect(await faultOf(up.list())).toMatch(
        /^unavailable: No program is started: its home .* cannot be made: E/,
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
      "connectors.stdio_user is root, which could read everything here",
    );
  });

  test("does not run as a user that nobody knows", () => {
    using data = directory();
    expect(() => users(data.path, "nobody-of-this-name")).toThrow("/etc/passwd does not list");
  });

  test("that may not be executed by its user is refused in words that say what to do", async () => {
    using data = directory();
    using tools = directory();
    await Bun.write(join(tools.path, "tool"), "#!/bin/sh\n");
    const transport = { type: "stdio", command: join(tools.path, "tool"), args: [], env: {} } as const;
    await using up = open(transport, { programUsers: users(data.path) });
    expect(await faultOf(up.list())).toMatch(/EACCES.*who must be able to read and execute it/);
  });

  describe("finds of the server", () => {
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

    test("no file of its data directory, not its memory, its environment or its descriptors", async () => {
      const gateway = await startGateway();
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
        // The shell opens the folder that it lists as its fourth.
        expect(words).toMatch(/descriptors (\/proc\/self\/fd\/[0123] ?)+$/);
      } finally {
        await gateway.stop();
      }
    });
  });
});

describe("where the server does not run as root", () => {
  test("a program runs as the server's user", () => {
    using data = directory();
    expect(openProgramUsers({ dataDir: data.path, stdioUser: undefined, ownUid: 1_000 })).toBeNull();
    expect(openProgramUsers({ dataDir: data.path, stdioUser: "1000", ownUid: 1_000 })).toBeNull();
  });

  test("another user cannot be chosen, and the start says so", () => {
    using data = directory();
    const opening = () => openProgramUsers({ dataDir: data.path, stdioUser: "1001", ownUid: 1_000 });
    expect(opening).toThrow("only a server that runs as root can start programs as another user");
  });
});

describe("homes", () => {
  const uid = process.geteuid?.() ?? 0;
  const gid = process.getegid?.() ?? 0;

  test("that a killed process left are removed before the first one is made", async () => {
    using temporary = directory();
    const left = await new ProgramHomes("/data", temporary.path).make(uid, gid);
    await Bun.write(join(left, "deep", "file"), "x");
    const other = await new ProgramHomes("/other", temporary.path).make(uid, gid);
    const homes = new ProgramHomes("/data", temporary.path);
    const first = await homes.make(uid, gid);
    const second = await homes.make(uid, gid);
    expect([left, other, first, second].map((path) => existsSync(path))).toEqual([false, true, true, true]);
    expect(statSync(first).mode & 0o777).toBe(0o700);
  });

  test("are not made where somebody else has laid a link", async () => {
    using temporary = directory();
    const made = await new ProgramHomes("/data", temporary.path).make(uid, gid);
    const parent = join(made, "..");
    rmSync(parent, { recursive: true });
    symlinkSync("/tmp", parent);
    expect(new ProgramHomes("/data", temporary.path).make(uid, gid)).rejects.toThrow(
      "is not a directory of the server's user; remove it",
    );
  });
});

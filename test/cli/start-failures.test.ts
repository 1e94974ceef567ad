/**
 * Every command that opens the data directory reports a failure of the machine in one line, with what to do about it.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withOpenFiles } from "../faults/open-files-support.ts";
import { type Ran, run, tempDir } from "../support/process.ts";
import { smallDisk } from "../support/small-disk.ts";

setDefaultTimeout(60_000);

const LISTEN = ["--listen", "127.0.0.1:0"];
const VERBS: readonly (readonly string[])[] = [
  ["serve", ...LISTEN],
  ["token", "list"],
  ["task", "run", "--agent", "helper", "hi"],
  ["vault", "add", "note.txt", "--scope", "notes"],
  ["ledger", "export", "--output", "out.ndjson"],
  ["connector", "list"],
  ["mcp"],
];

const directory = tempDir();
const good = join(directory.path, "good");
let copies = 0;

beforeAll(async () => {
  writeFileSync(join(directory.path, "note.txt"), "a note");
  expect(await run(["token", "list", "--data", good], { cwd: directory.path })).toMatchObject({ code: 0 });
});
afterAll(() => directory.remove());

function copy(): string {
  const data = join(directory.path, `copy-${copies++}`);
  cpSync(good, data, { recursive: true });
  chmodSync(data, 0o700);
  return data;
}

/** Runs each command on a copy of the data directory that `spoil` has damaged. */
function runAll(spoil: (data: string) => void): Promise<(Ran & { readonly data: string })[]> {
  const env = { GATEHOUSE_TOKEN: `gth_${"a".repeat(49)}` };
  return Promise.all(
    VERBS.map(async (verb) => {
      const data = copy();
      spoil(data);
      return { ...(await run([...verb, "--data", data], { cwd: directory.path, env })), data };
    }),
  );
}

/** Expects one message and one hint, whatever was logged before them. */
function expectFailure({ code, stdout, stderr }: Ran, message: string, hint: string): void {
  const lines = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
  expect(lines).toEqual([`gatehouse: ${message}`, `  ${hint}`]);
  expect([code, stdout]).toEqual([1, ""]);
}

const elsewhere = "choose another data directory with --data";

describe("every command reports in one line, with what to do, that", () => {
  test("the disk is full", async () => {
    const disk = smallDisk();
    try {
      const data = join(disk.path, "data");
      cpSync(good, data, { recursive: true });
      disk.fill();
      const options = { cwd: directory.path, env: { GATEHOUSE_TOKEN: `gth_${"a".repeat(49)}` } };
      for (const verb of VERBS) {
        const { code, stderr } = await run([...verb, "--data", data], options);
        expect(stderr).toMatch(/^gatehouse: .*(full|cannot be written).*\n {2}.*\n$/);
        expect(code).toBe(1);
      }
    } finally {
      disk.free();
      disk.remove();
    }
  });

  test("there is no room for a new data directory, at whatever point the disk is full", async () => {
    // Limits on the size of a file, each of which stops the first start at a different point.
    for (const kib of [0, 8, 64, 256, 384]) {
      const data = join(directory.path, `new-${kib}`);
      const program = (await withOpenFiles(256)).with(2, `ulimit -f ${kib * 2} && exec "$@"`);
      const { code, stderr } = await run(["token", "list", "--data", data], { cwd: directory.path, program });
      expect(stderr).not.toContain("    at ");
      if (code !== 0) expect(stderr).toMatch(/gatehouse: .*\n {2}.*\n$/);
      expect([0, 1]).toContain(code);
    }
  });

  test("the database is something else", async () => {
    for (const ran of await runAll((data) =>
      writeFileSync(join(data, "gatehouse.db"), "hello ".repeat(5_000)),
    )) {
      const file = join(ran.data, "gatehouse.db");
      expectFailure(ran, `the database file ${file} is not a Gatehouse database`, elsewhere);
    }
  });

  test("the database is broken", async () => {
    const truncate = (data: string) => {
      const file = join(data, "gatehouse.db");
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.subarray(0, bytes.length / 2));
    };
    for (const ran of await runAll(truncate)) {
      const message = `the database file ${join(ran.data, "gatehouse.db")} cannot be opened: database disk image is malformed (SQLITE_CORRUPT)`;
      expectFailure(ran, message, "restore the data directory from a backup");
    }
  });

  test("the lock is something else", async () => {
    for (const ran of await runAll((data) =>
      writeFileSync(join(data, "gatehouse.lock"), "hello ".repeat(999)),
    )) {
      const message = `the file ${join(ran.data, "gatehouse.lock")} is not a Gatehouse lock file`;
      expectFailure(ran, message, "move it away, then try again");
    }
  });

  test("server.json is a directory", async () => {
    for (const ran of await runAll((data) => mkdirSync(join(data, "server.json")))) {
      const message = `${join(ran.data, "server.json")} is a directory where a file is needed (EISDIR)`;
      expectFailure(ran, message, "move it away");
    }
  });

  test("the data directory is a file", async () => {
    const replace = (data: string) => {
      rmSync(data, { recursive: true });
      writeFileSync(data, "");
    };
    for (const ran of await runAll(replace)) {
      expectFailure(ran, `${ran.data} is a file, not a directory`, elsewhere);
    }
  });

  test("a key can be used by others, or is not a key", async () => {
    const key = (data: string) => join(data, "ledger.key");
    for (const ran of await runAll((data) => chmodSync(key(data), 0o644))) {
      const message = `the key file ${key(ran.data)} is accessible to other users (mode 0644)`;
      expectFailure(ran, message, `run chmod 600 ${key(ran.data)}`);
    }
    for (const { code, stderr } of await runAll((data) => writeFileSync(key(data), "zzz"))) {
      expect(stderr).toMatch(
        /^gatehouse: the key file .* does not contain a key\n {2}restore it from a backup; .*\n$/,
      );
      expect(code).toBe(1);
    }
  });
});

describe("a server reports in one line, with what to do, that", () => {
  const serve = (data: string, listen = LISTEN) =>
    run(["serve", ...listen, "--data", data], { cwd: directory.path });

  test("its port is taken", async () => {
    using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const address = `127.0.0.1:${other.port}`;
    const ran = await serve(copy(), ["--listen", address]);
    expect(ran.stderr).toMatch(
      new RegExp(`^gatehouse: cannot listen on ${address}: .*\\n {2}choose another address`, "m"),
    );
    expect(ran.stderr).not.toContain("    at ");
    expect(ran.code).toBe(1);
  });

  test("its address does not belong to this machine", async () => {
    const ran = await serve(copy(), ["--listen", "192.0.2.1:0"]);
    expect(ran.stderr).toMatch(
      /^gatehouse: cannot listen on 192\.0\.2\.1:0: .*\n {2}choose another address/m,
    );
    expect(ran.stderr).not.toContain("    at ");
    expect(ran.code).toBe(1);
  });

  test("the first admin token's file is a directory", async () => {
    const data = join(directory.path, "new");
    const file = join(data, "admin.token");
    mkdirSync(file, { recursive: true });
    chmodSync(data, 0o700);
    expectFailure(
      await serve(data),
      `${file} is a directory where a file is needed (EISDIR)`,
      "move it away",
    );
  });

  test("it has too few descriptors even to open its store", async () => {
    const program = await withOpenFiles(16);
    const ran = await run(["serve", ...LISTEN, "--data", copy()], { cwd: directory.path, program });
    expect(ran.stderr).toMatch(/gatehouse: .*\n {2}.*\n$/);
    expect(ran.stderr).not.toContain("    at ");
    expect(ran.code).toBe(1);
  });
});

/** Processes with the setting `store`: what a refused start says, what remains in files, and the command line. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { type FakeAnswers, startFakeServer } from "../../support/postgres/fake-server.ts";
import { AGENT, type Desk, openDesk, SECRET } from "../support.ts";

setDefaultTimeout(60_000);

const PASSWORD = "s3cret-pa%24s";
const MASTER_KEY = "7".repeat(64);
const DATA = ["--data", "data"];

/** A password must not be in any output, in whatever form. */
function withoutPassword(text: string): string {
  for (const form of ["s3cret", PASSWORD, "s3cret-pa$s"]) expect(text).not.toContain(form);
  return text;
}

describe("a server is refused, in two lines that say what to do,", () => {
  const desk = openDesk();
  afterAll(() => desk.clear());

  async function refused(env: Record<string, string>): Promise<{ code: number; lines: string[] }> {
    const all = { GATEHOUSE_MASTER_KEY: MASTER_KEY, ...env };
    const { code, stderr } = await desk.cli(["serve", "--listen", "127.0.0.1:0", ...DATA], all);
    return { code, lines: withoutPassword(stderr).trimEnd().split("\n") };
  }

  const url = (port: number) => `postgres://gatehouse:${PASSWORD}@127.0.0.1:${port}/gatehouse`;

  async function refusedBy(answers: FakeAnswers) {
    const server = await startFakeServer(answers);
    const ran = await refused({ GATEHOUSE_STORE: url(server.port) });
    server.close();
    return { ...ran, lines: ran.lines.map((line) => line.replace(String(server.port), "PORT")) };
  }

  test("if the URL is malformed", async () => {
    const { code, lines } = await refused({ GATEHOUSE_STORE: `postgres://gatehouse:${PASSWORD}@127.0.0.1` });
    expect([code, lines[0]]).toEqual([
      2,
      expect.stringContaining("store (GATEHOUSE_STORE): is [redacted]; expected"),
    ]);
  });

  test("if the master key is missing", async () => {
    const env = { GATEHOUSE_STORE: url(1), GATEHOUSE_MASTER_KEY: "" };
    expect(await refused(env)).toEqual({
      code: 2,
      lines: [
        "gatehouse: the setting master_key is missing: nodes that share a store need the same one",
        expect.stringContaining("set GATEHOUSE_MASTER_KEY to the same value on all nodes"),
      ],
    });
  });

  test("if nothing listens there", async () => {
    expect(await refused({ GATEHOUSE_STORE: url(1) })).toEqual({
      code: 1,
      lines: [
        expect.stringMatching(
          /^gatehouse: the database gatehouse on 127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/,
        ),
        "  check that the server runs, and that this machine can reach it",
      ],
    });
  });

  test("if the host has no address", async () => {
    const { code, lines } = await refused({
      GATEHOUSE_STORE: `postgres://gatehouse:${PASSWORD}@nowhere.invalid/gatehouse`,
    });
    expect([code, lines.length]).toEqual([1, 2]);
    expect(lines[0]).toContain("the database gatehouse on nowhere.invalid cannot be used");
  });

  test("if nothing answers there", async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const address = silent.address();
    const { code, lines } = await refused({
      GATEHOUSE_STORE: url(typeof address === "object" && address ? address.port : 0),
    });
    silent.close();
    expect([code, lines.length]).toEqual([1, 2]);
    expect(lines[0]).toContain("cannot be used: ");
  });

  test("if PostgreSQL is too old", async () => {
    const row = {
      number: { type: 23, value: "140011" },
      version: { type: 25, value: "14.11" },
      encoding: { type: 25, value: "UTF8" },
    };
    expect(await refusedBy({ row })).toEqual({
      code: 1,
      lines: [
        "gatehouse: the server is PostgreSQL 14.11, which is too old",
        "  upgrade it to PostgreSQL 15 or later",
      ],
    });
  });

  test("if the password is wrong", async () => {
    const message = 'password authentication failed for user "gatehouse"';
    expect(await refusedBy({ code: "28P01", message })).toEqual({
      code: 1,
      lines: [
        `gatehouse: the database gatehouse on 127.0.0.1:PORT cannot be used: ${message}`,
        "  check the user and the password in the store's URL",
      ],
    });
  });
});

describe.skipIf(missingPostgres !== undefined)("with a database", () => {
  let database: TestDatabase;
  const desk: Desk = openDesk();
  let env: Record<string, string> = {};

  beforeAll(async () => {
    database = await createDatabase();
    env = { GATEHOUSE_STORE: database.url, GATEHOUSE_MASTER_KEY: MASTER_KEY };
  });

  afterAll(async () => {
    await desk.clear();
    await database.drop();
  });

  async function refusedBy(prepare: (other: TestDatabase) => Promise<unknown>, key = MASTER_KEY) {
    const other = await createDatabase();
    try {
      await prepare(other);
      const { code, stderr } = await desk.cli(["serve", "--listen", "127.0.0.1:0", "--data", "refused"], {
        GATEHOUSE_STORE: other.url,
        GATEHOUSE_MASTER_KEY: key,
      });
      return [code, ...stderr.trimEnd().split("\n")];
    } finally {
      await other.drop();
    }
  }

  test("of another program, or a newer version, a server is refused", async () => {
    expect(await refusedBy((other) => other.query("CREATE TABLE invoices (id int)"))).toEqual([
      1,
      "gatehouse: the database has tables, and is not a Gatehouse database",
      "  create an empty database and name it in the store's URL",
    ]);
    const newer = await refusedBy(async (other) => {
      await desk.out(["token", "list", ...DATA], { ...env, GATEHOUSE_STORE: other.url });
      await other.query(
        "INSERT INTO gatehouse_schema (version, name, usable_from) VALUES (999, 'later', 999)",
      );
    });
    expect(newer).toEqual([
      1,
      expect.stringContaining("the database was upgraded by a newer Gatehouse (schema 999, "),
      "  run the newer version, or restore a backup from before the upgrade",
    ]);
  });

  test("that another master key was used with, a server is refused", async () => {
    const create = (other: TestDatabase) =>
      desk.out(["token", "list", ...DATA], { ...env, GATEHOUSE_STORE: other.url });
    expect(await refusedBy(create, "8".repeat(64))).toEqual([
      1,
      "gatehouse: the store's keys are sealed with another master key",
      expect.stringContaining("set GATEHOUSE_MASTER_KEY"),
    ]);
  });

  test("that is empty, a stop is refused instead of creating something", async () => {
    const other = await createDatabase();
    const { code, stderr } = await desk.cli(["stop-all", ...DATA], { ...env, GATEHOUSE_STORE: other.url });
    expect([code, stderr]).toEqual([1, expect.stringContaining("the store's database, which is empty")]);
    expect(await other.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
    await other.drop();
  });

  test("two commands can run at a time, with a server and without one", async () => {
    const create = (name: string) =>
      desk.cli(["token", "create", "--name", name, "--scope", "tasks:read", ...DATA], env);
    for (const ran of await Promise.all([create("one"), create("two")])) {
      expect(ran).toMatchObject({ code: 0 });
      expect(ran.stdout.trim()).toMatch(SECRET);
    }
    const server = await desk.serve(DATA, env);
    for (const ran of await Promise.all([create("three"), create("four")]))
      expect(ran).toMatchObject({ code: 0 });
    const names = (await desk.out(["token", "list", "--json", ...DATA], env)).match(
      /"(one|two|three|four)"/g,
    );
    expect(names?.sort()).toEqual(['"four"', '"one"', '"three"', '"two"']);
    const listed = JSON.parse(await desk.out(["nodes", "--json", ...DATA], env));
    expect(listed).toMatchObject([{ id: expect.stringMatching(/^node_/), tasks: 0 }]);
    expect(await desk.out(["nodes", ...DATA], env)).toMatch(
      /^NODE +VERSION +SINCE +LAST SEEN +TASKS\nnode_\S+ +\S+ .* 0\n$/,
    );
    expect(await server.end("SIGINT")).toBe(0);
    expect(JSON.parse(await desk.out(["nodes", "--json", ...DATA], env))).toEqual([]);
  });

  test("every command works, and only what belongs to the server remains in its data directory", async () => {
    const own = { ...env, GATEHOUSE_LOG_LEVEL: "debug" };
    const data = join(desk.cwd, "own");
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(join(data, "gatehouse.yaml"), "ledger: { checkpoint_file: checkpoints }\n");
    mkdirSync(join(desk.cwd, "notes"));
    writeFileSync(join(desk.cwd, "notes", "refunds.md"), "# Refunds\n\nRefunds take three days.\n");
    const cli = async (...args: string[]) => withoutPassword(await desk.out([...args, "--data", "own"], own));
    const token = (await cli("token", "create", "--name", "ci", "--scope", "admin")).trim();
    const server = await desk.serve(["--data", "own"], own);
    const created = await desk.call(server, token, "POST", "/v1/agents", AGENT);
    expect(created.status).toBe(201);
    await cli("task", "run", "--agent", "helper", "What is new?");
    expect(await server.end("SIGTERM")).toBe(0);
    const log = server.stderr();
    expect(log).not.toContain(new URL(database.url).password.slice(10));
    // Again without a server, so each command opens the store itself.
    expect(await cli("task", "run", "--agent", "helper", "What is new?")).not.toBe("");
    await cli("vault", "add", "notes", "--scope", "support");
    expect(await cli("vault", "search", "How long do refunds take?")).toContain("Refunds");
    expect(await cli("workspace", "create", "acme")).toBe("acme\n");
    expect(await cli("workspace", "stop", "acme")).toContain("stopped");
    expect(await cli("stop-all")).toContain("default\tstopped");
    expect(await cli("resume-all")).toContain("default\tactive");
    expect(await cli("connector", "list")).not.toBe("");
    expect(await cli("ledger", "checkpoint")).toContain("gatehouse/");
    await cli("ledger", "export", "--output", "evidence.zip");
    const key = await cli("ledger", "key");
    expect(await cli("ledger", "rotate-key")).not.toBe(key);
    expect(await cli("config", "show")).not.toContain(new URL(database.url).password);
    const { code, stderr } = await desk.cli(["reseal", "--data", "own"], own);
    expect([code, stderr]).toEqual([2, expect.stringContaining("cannot be sealed as they are")]);
    const { code: bundle } = await desk.cli(["ledger", "verify", "--bundle", "evidence.zip"], own);
    expect(bundle).toBe(0);
    expect(readdirSync(data).sort()).toEqual(["checkpoints", "gatehouse.lock", "gatehouse.yaml"]);
  });
});

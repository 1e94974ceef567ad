/** `store migrate` and `store copy`: from a data directory to a database that servers share, and back. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../../../src/store/postgres/migrations/index.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { AGENT, type Desk, openDesk } from "../support.ts";

setDefaultTimeout(120_000);

const MASTER_KEY = "7".repeat(64);
/** PostgreSQL cannot store U+0000 as it is. */
const DESCRIBED = { ...AGENT, description: "a\u0000b\u0001c" };
const PETS = expect.arrayContaining([expect.objectContaining({ name: "pets", status: "ready" })]);
const WEBHOOK = { GATEHOUSE_NOTIFY_WEBHOOK: "http://127.0.0.1:9/hook" };
/** An API that is not contacted when it is added. */
const CONNECTOR = {
  name: "pets",
  kind: "openapi",
  base_url: "http://127.0.0.1:9",
  auth: { type: "bearer", token: "secret-of-the-pets" },
  spec: {
    openapi: "3.1.0",
    info: { title: "Pets", version: "1" },
    paths: { "/pets": { get: { operationId: "listPets", responses: { "200": { description: "Pets" } } } } },
  },
};

describe.skipIf(missingPostgres !== undefined)("a store", () => {
  const desk: Desk = openDesk();
  const databases: TestDatabase[] = [];
  let admin = "";
  let documentId = "";

  async function emptyDatabase(): Promise<{ database: TestDatabase; env: Record<string, string> }> {
    const database = await createDatabase();
    databases.push(database);
    return { database, env: { GATEHOUSE_STORE: database.url, GATEHOUSE_MASTER_KEY: MASTER_KEY } };
  }

  const copy = (...args: string[]) =>
    desk.cli(["store", "copy", ...args], { GATEHOUSE_MASTER_KEY: MASTER_KEY });

  /** A directory as a copy must not change it. */
  function copyOf(name: string): string {
    const path = join(desk.cwd, name);
    cpSync(join(desk.cwd, "one"), path, { recursive: true });
    return path;
  }

  beforeAll(async () => {
    const data = ["--data", "one"];
    const server = await desk.serve(data, WEBHOOK);
    admin = readFileSync(join(desk.cwd, "one", "admin.token"), "utf8").trim();
    const call = async (method: string, path: string, body?: object) => {
      const response = await desk.call(server, admin, method, path, body);
      expect(response.status).toBeLessThan(300);
      return (await response.json()) as { readonly id: string };
    };
    await call("POST", "/v1/agents", DESCRIBED);
    await call("POST", "/v1/connectors", CONNECTOR);
    const text = `Refunds take three days. — \u{1F600}`;
    ({ id: documentId } = await call("POST", "/v1/vault/documents", {
      ...{ title: "Refunds", text, scope: "support" },
      metadata: { source: "wiki" },
    }));
    await desk.out(["task", "run", "--agent", "helper", "How long do refunds take?", ...data]);
    await desk.out(["workspace", "create", "acme", ...data]);
    await desk.out(["token", "create", "--name", "acme", "--scope", "admin", "--workspace", "acme", ...data]);
    await desk.out(["ledger", "rotate-key", ...data]);
    expect(await server.end("SIGTERM")).toBe(0);
  });

  afterAll(async () => {
    await desk.clear();
    for (const database of databases) await database.drop();
  });

  test("is migrated once", async () => {
    const { env } = await emptyDatabase();
    const missing = await desk.cli(["store", "migrate", "--data", "none"]);
    expect([missing.code, missing.stderr]).toEqual([
      2,
      expect.stringContaining("the setting store is missing"),
    ]);
    const to = MIGRATIONS.length;
    const migrate = () => desk.out(["store", "migrate", "--data", "none"], env);
    expect(await migrate()).toBe(`The schema was created with version ${to}.\n`);
    expect(await migrate()).toBe(`The schema has version ${to} already.\n`);
    expect(JSON.parse(await desk.out(["store", "migrate", "--data", "none", "--json"], env))).toEqual({
      from: to,
      to,
    });
    expect(existsSync(join(desk.cwd, "none"))).toBe(false);
  });

  test("is copied into a database, used by two servers, and copied back", async () => {
    const { database, env } = await emptyDatabase();
    const before = await desk.out(["ledger", "key", "--json", "--data", copyOf("before")]);
    const source = new Database(join(desk.cwd, "one", "gatehouse.db"), { readonly: true });
    const entries = source.query("SELECT workspace_id, seq, leaf, bytes FROM ledger ORDER BY 1, 2").values();
    const notes = source
      .query("SELECT workspace_id, size, note FROM ledger_checkpoints ORDER BY 1, 2")
      .values();
    source.close();
    const copied = await copy("--data", "one", "--to", database.url);
    expect(copied).toMatchObject({ code: 0 });
    expect(copied.stdout).toMatch(
      /^default\t\d+ entries\nacme\t\d+ entries\nCopied and verified \d+ rows of \d+ tables\.\n$/,
    );
    const rows = await database.query<{ workspace_id: string; seq: string; leaf: Buffer; bytes: string }>(
      "SELECT workspace_id, seq, leaf, bytes FROM ledger ORDER BY 1, 2",
    );
    const plain = (value: unknown) => (value instanceof Uint8Array ? value.toHex() : String(value));
    expect(rows.map((row) => Object.values(row).map(plain))).toEqual(entries.map((row) => row.map(plain)));
    const stored = await database.query(
      "SELECT workspace_id, size, note FROM ledger_checkpoints ORDER BY 1, 2",
    );
    expect(stored.map((row) => Object.values(row).map(plain))).toEqual(notes.map((row) => row.map(plain)));

    const servers = [
      await desk.serve(["--data", "node-a"], { ...env, ...WEBHOOK }),
      await desk.serve(["--data", "node-b"], { ...env, ...WEBHOOK }),
    ];
    for (const server of servers) {
      const read = async (path: string) => await (await desk.call(server, admin, "GET", path)).json();
      expect(await read("/v1/agents/helper")).toMatchObject({ description: DESCRIBED.description });
      expect(await read("/v1/connectors")).toMatchObject({ data: PETS });
      expect(await read(`/v1/vault/documents/${documentId}`)).toMatchObject({
        text: `Refunds take three days. — \u{1F600}`,
        metadata: { source: "wiki" },
      });
      const task = await desk.call(server, admin, "POST", "/v1/tasks?stream=true", {
        ...{ agent: "helper", prompt: "How long do refunds take?" },
      });
      expect(await task.text()).toContain('"status":"succeeded"');
      expect(server.stderr()).not.toMatch(/"level":"(warn|error)"/);
    }
    const running = await copy("--from", database.url, "--data", "early");
    expect([running.code, running.stderr]).toEqual([1, expect.stringContaining("is in use by 2 servers")]);
    for (const server of servers) expect(await server.end("SIGTERM")).toBe(0);

    const back = await copy("--from", database.url, "--data", "two");
    expect(back).toMatchObject({ code: 0 });
    expect(readdirSync(desk.cwd).filter((name) => name.includes("partial"))).toEqual([]);
    expect(readdirSync(join(desk.cwd, "two")).sort()).toEqual([
      ...["gatehouse.db", "ledger.key", "master_key.sealed", "webhook.key"],
    ]);
    for (const key of ["webhook.key"]) {
      expect(readFileSync(join(desk.cwd, "two", key), "utf8")).toBe(
        readFileSync(join(desk.cwd, "one", key), "utf8"),
      );
    }
    const verified = await desk.cli(["ledger", "verify", "--data", "two"]);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("Holds")]);
    const own = { GATEHOUSE_MASTER_KEY: MASTER_KEY, ...WEBHOOK };
    expect(JSON.parse(await desk.out(["ledger", "key", "--json", "--data", "two"], own))).toEqual(
      JSON.parse(before),
    );
    const server = await desk.serve(["--data", "two"], own);
    const connectors = await desk.call(server, admin, "GET", "/v1/connectors");
    expect(await connectors.json()).toMatchObject({ data: PETS });
    const created = await desk.call(server, admin, "POST", "/v1/agents", { ...AGENT, name: "later" });
    expect(created.status).toBe(201);
    expect(server.stderr()).not.toMatch(/"level":"(warn|error)"/);
    expect(await server.end("SIGTERM")).toBe(0);
    expect((await desk.cli(["ledger", "verify", "--data", "two"])).code).toBe(0);
  });

  describe("is not copied", () => {
    test("if the command is wrong", async () => {
      const url = "postgres://gatehouse:secret@127.0.0.1:1/gatehouse";
      for (const [args, message] of [
        [["--data", "one"], "name one database, with --to or --from"],
        [["--data", "one", "--to", url, "--from", url], "name one database, with --to or --from"],
        [["--data", "one", "--to", "postgres://user:secret@host"], "--to: is not a URL of the form"],
        [["--data", "one", "--to"], "the setting store is missing"],
        [["--data", "nowhere", "--to", url], "there is no database in"],
      ] as const) {
        const { code, stderr } = await copy(...args);
        expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
        expect(stderr).not.toContain("secret@");
      }
      const { code } = await desk.cli(["store", "copy", "--data", "one", "--to", url]);
      expect(code).toBe(2);
    });

    test("if a server uses the directory", async () => {
      const { database } = await emptyDatabase();
      const data = copyOf("used");
      const server = await desk.serve(["--data", data]);
      const { code, stderr } = await copy("--data", data, "--to", database.url);
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining("another process is using the data directory"),
      ]);
      await server.end("SIGTERM");
    });

    test("into a database or a directory that is not empty", async () => {
      const { database, env } = await emptyDatabase();
      await desk.out(["token", "list", "--data", "other"], env);
      const tables = () => database.query("SELECT count(*) FROM ledger");
      const before = (await tables())[0] ?? {};
      // The command has left, and its row with it.
      const { code, stderr } = await copy("--data", "one", "--to", database.url);
      expect([code, stderr]).toEqual([1, expect.stringContaining("is not empty")]);
      expect((await tables())[0]).toEqual(before);
      mkdirSync(join(desk.cwd, "full"));
      writeFileSync(join(desk.cwd, "full", "notes"), "");
      const back = await copy("--from", database.url, "--data", "full");
      expect([back.code, back.stderr]).toEqual([1, expect.stringContaining("is not empty")]);
      const { database: empty } = await emptyDatabase();
      const nothing = await copy("--from", empty.url, "--data", "new");
      expect([nothing.code, nothing.stderr]).toEqual([1, expect.stringContaining("is empty")]);
      expect(existsSync(join(desk.cwd, "new"))).toBe(false);
    });

    test("if its ledger was changed, and nothing is left behind", async () => {
      const { database } = await emptyDatabase();
      const data = copyOf("changed");
      const changed = new Database(join(data, "gatehouse.db"));
      changed.exec("DROP TRIGGER ledger_no_update");
      changed.exec("UPDATE ledger SET bytes = replace(bytes, 'agent.create', 'agent.delete')");
      changed.close();
      const { code, stderr } = await copy("--data", data, "--to", database.url);
      expect([code, stderr]).toEqual([1, expect.stringContaining("were changed, so they are not copied")]);
      expect((await copy("--data", "one", "--to", database.url)).code).toBe(0);
      await database.query("ALTER TABLE ledger DISABLE TRIGGER ALL");
      await database.query("UPDATE ledger SET bytes = replace(bytes, 'agent.create', 'agent.delete')");
      await database.query("ALTER TABLE ledger ENABLE TRIGGER ALL");
      const back = await copy("--from", database.url, "--data", "back");
      expect([back.code, back.stderr]).toEqual([1, expect.stringContaining("changed")]);
      expect(readdirSync(desk.cwd).filter((name) => name.includes("back"))).toEqual([]);
    });

    test("with another master key", async () => {
      const { database } = await emptyDatabase();
      expect((await copy("--data", "one", "--to", database.url)).code).toBe(0);
      const { code, stderr } = await desk.cli(["store", "copy", "--from", database.url, "--data", "back"], {
        GATEHOUSE_MASTER_KEY: "8".repeat(64),
      });
      expect([code, stderr]).toEqual([1, expect.stringContaining("sealed with another master key")]);
    });
  });

  test("has its vectors made again, except those of models that are no longer used", async () => {
    const { database } = await emptyDatabase();
    const data = copyOf("vectors");
    const source = new Database(join(data, "gatehouse.db"));
    source.exec("UPDATE vault_spaces SET state = 'kept'");
    source.exec(
      "INSERT INTO vault_spaces (id, name, dimensions, state, created_at) VALUES (5, 'a/b', 3, 'active', 0), (6, 'a/c', 3, 'kept', 0)",
    );
    source.close();
    expect((await copy("--data", data, "--to", database.url)).code).toBe(0);
    const missing = await database.query(
      "SELECT s.name FROM vault_chunks c LEFT JOIN vault_pending p ON p.chunk_key = c.key LEFT JOIN vault_spaces s ON s.id = p.space_id",
    );
    expect(missing).toEqual([{ name: "a/b" }]);
    // The next space gets another number than one that was used before.
    const [next] = await database.query<{ id: string }>(
      "INSERT INTO vault_spaces (name, dimensions, state, created_at) VALUES ('a/d', 3, 'filling', 0) RETURNING id",
    );
    expect(next?.id).toBe("7");
  });

  test("keeps a row that was changed as one that is not trusted", async () => {
    const { database, env } = await emptyDatabase();
    const data = copyOf("forged");
    const changed = new Database(join(data, "gatehouse.db"));
    changed.exec("UPDATE agents SET instructions = 'Obey me.' WHERE name = 'helper'");
    changed.close();
    expect((await copy("--data", data, "--to", database.url)).code).toBe(0);
    const server = await desk.serve(["--data", "node-c"], env);
    const { status } = await desk.call(server, admin, "GET", "/v1/agents/helper");
    expect(status).toBe(404);
    await server.end("SIGTERM");
  });
});

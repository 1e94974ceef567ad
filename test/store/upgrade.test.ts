/**
 * A data directory from an earlier release, opened by today's program. fixtures/ has one file for each schema
 * version, which is never edited: a database with rows in every table.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SCHEMA_VERSION } from "../../src/store/sqlite/migrate.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { connect } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents } from "../support/events.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";

const VERSIONS = [1];
/** An hour after the fixture was made, so that the same things have expired in every run. */
const LATER = Date.UTC(2026, 10, 21, 13, 0, 0);

test("there is a fixture for every released version", () => {
  expect(SCHEMA_VERSION).toBeGreaterThanOrEqual(VERSIONS.length);
  expect(VERSIONS.at(-1)).toBeLessThanOrEqual(SCHEMA_VERSION);
});

function restore(version: number, path: string): string {
  const sql = readFileSync(join(import.meta.dir, "fixtures", `v${version}.sql`), "utf8");
  const database = new Database(path);
  database.exec(sql);
  database.close();
  return sql;
}

/** A value from the fixture's heading: a secret or an id that the rows belong to. */
function note(sql: string, name: string): string {
  const found = new RegExp(`^-- .*?\\b${name}: (\\S+)`, "m").exec(sql)?.[1];
  if (found === undefined) throw new Error(`the fixture names no ${name}`);
  return found;
}

/** The schema without the vectors' tables. These come with each space rather than from a migration. */
function schemaOf(path: string): unknown[] {
  const database = new Database(path);
  const rows = database
    .query(
      "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE '%vault_vectors_%' ORDER BY type, name",
    )
    .all();
  database.close();
  return rows;
}

describe.each(VERSIONS)("a data directory of schema version %d", (version) => {
  const directory = tempDir();
  let sql: string;
  let gateway: TestGateway;
  const entriesBefore: unknown[] = [];

  beforeAll(async () => {
    const path = join(directory.path, "gatehouse.db");
    sql = restore(version, path);
    const before = new Database(path);
    entriesBefore.push(...before.query("SELECT * FROM ledger ORDER BY workspace_id, seq").all());
    before.close();
    gateway = await startGateway({ dataDir: directory.path, clock: new FakeClock(LATER) });
  });

  afterAll(async () => {
    await gateway.stop();
    directory.remove();
  });

  const admin = () => ({ token: note(sql, "admin token") });

  test("gets the same schema as an empty one", async () => {
    const fresh = tempDir();
    const path = join(fresh.path, "gatehouse.db");
    await openSqlite(path, { seals: SEALS }).close();
    expect(schemaOf(join(directory.path, "gatehouse.db"))).toEqual(schemaOf(path));
    fresh.remove();
  });

  test("keeps its tokens: the rotated one's new secret, but not the old one", async () => {
    expect((await gateway.call("GET", "/v1/agents", admin())).status).toBe(200);
    const agent = { token: note(sql, "agent token") };
    expect((await gateway.call("GET", "/v1/tasks", agent)).status).toBe(200);
    const tokens = await gateway.call("GET", "/v1/tokens", admin());
    expect(tokens.body.data).toContainEqual(
      expect.objectContaining({ name: "ci", agent: "helper", person: "Ada Lovelace", role: "engineer" }),
    );
  });

  test("shows its tokens all tools over MCP, and has only the built-in connectors", async () => {
    const client = await connect(gateway, admin());
    expect(await client.toolNames()).toContain("agents__helper");
    expect(await client.toolNames()).toContain("time__now");
    const { body } = await gateway.call("GET", "/v1/connectors", admin());
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(["time", "vault"]);
  });

  test("keeps its agents, including archived ones", async () => {
    const agents = await gateway.call("GET", "/v1/agents", admin());
    expect(agents.body.data.map((agent: { name: string }) => agent.name)).toEqual(["helper"]);
    expect(agents.body.data[0]).toMatchObject({
      owner: "Ada",
      instructions: "Be brief.",
      budget: { credits_per_day: 100 },
    });
  });

  test("keeps a finished task with its texts, tool calls, cost and events", async () => {
    const id = note(sql, "finished");
    const { body } = await gateway.call("GET", `/v1/tasks/${id}`, admin());
    expect(body).toMatchObject({
      prompt: "What time is it? ünïcödé 🚪",
      status: "succeeded",
      credits_consumed: 0.0239,
      tools_called: [{ tool: "time.now", status: "succeeded" }],
      metadata: { order: "7" },
    });
    const headers = { authorization: `Bearer ${admin().token}` };
    const events = await allEvents(await fetch(`${gateway.url}/v1/tasks/${id}/events`, { headers }));
    expect(events.map((event) => event.id)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)).toMatchObject({ event: "task.finished", data: body });
  });

  test("answers the previous day's idempotency key with the same task", async () => {
    const again = await gateway.call("POST", "/v1/tasks", {
      ...admin(),
      headers: { "Idempotency-Key": "key-1" },
      body: {
        agent: "helper",
        prompt: "What time is it? ünïcödé 🚪",
        tools: ["time.now"],
        metadata: { order: "7" },
      },
    });
    // The key belonged to the administrator who made the fixture.
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(again.body.id).toBe(note(sql, "finished"));
  });

  test("resumes the task that ran when the process died", async () => {
    const headers = { authorization: `Bearer ${admin().token}` };
    const response = await fetch(`${gateway.url}/v1/tasks/${note(sql, "running")}/events`, { headers });
    expect((await allEvents(response)).at(-1)).toMatchObject({
      event: "task.finished",
      data: { status: "succeeded", model: "builtin/extractive" },
    });
  });

  test("keeps every entry of the ledger to the byte, and continues after the last", async () => {
    const database = new Database(join(directory.path, "gatehouse.db"), { readonly: true });
    const entries = database.query("SELECT * FROM ledger ORDER BY workspace_id, seq").all();
    database.close();
    for (const entry of entriesBefore) expect(entries).toContainEqual(entry);
    expect(entries.length).toBeGreaterThan(entriesBefore.length);
  });
});

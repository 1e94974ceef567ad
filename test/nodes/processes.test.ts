/** Servers as separate processes that share a store: starting together, dying, frozen, upgraded, and ended from a terminal. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { AGENT, type Desk, openDesk } from "../cli/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";
import type { ServerProcess } from "../support/process.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";

setDefaultTimeout(90_000);

describe.skipIf(missingPostgres !== undefined)("three servers with one store", () => {
  const desk: Desk = openDesk();
  const admin = createSecret(systemRandom);
  let database: TestDatabase;
  let model: FakeModel;
  let upstream: ScriptedMcp;
  let env: Record<string, string> = {};
  const servers: ServerProcess[] = [];
  const calls = new Map<string, number>();

  beforeAll(async () => {
    database = await createDatabase();
    env = {
      GATEHOUSE_STORE: database.url,
      GATEHOUSE_MASTER_KEY: "7".repeat(64),
      GATEHOUSE_ADMIN_TOKEN: admin,
    };
    model = startFakeModel();
    upstream = startScriptedMcp([{ name: "send", inputSchema: { type: "object" } }]);
    upstream.answer(async ({ input }) => {
      const id = String(input.id);
      calls.set(id, (calls.get(id) ?? 0) + 1);
      return text("sent");
    });
    for (const name of ["a", "b", "c"]) {
      mkdirSync(join(desk.cwd, name), { mode: 0o700 });
      const yaml = `providers: { fake: { kind: openai-compatible, base_url: "${model.url}" } }\ntiers: { 1: { models: [fake/slow] } }\n`;
      writeFileSync(join(desk.cwd, name, "gatehouse.yaml"), yaml);
    }
    servers.push(...(await Promise.all(["a", "b", "c"].map((name) => desk.serve(["--data", name], env)))));
  });

  afterAll(async () => {
    await desk.clear();
    await model.close();
    await upstream.close();
    await database.drop();
  });

  const at = (index: number): ServerProcess => {
    const server = servers[index];
    if (!server) throw new Error("three servers were started");
    return server;
  };
  const call = async (index: number, method: string, path: string, body?: object) => {
    const response = await desk.call(at(index), admin, method, path, body);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  test("start at the same time, and create one workspace and one admin token", async () => {
    for (const index of [0, 1, 2]) expect((await call(index, "GET", "/v1/agents")).status).toBe(200);
    expect(await database.query("SELECT name FROM workspaces")).toEqual([{ name: "default" }]);
    expect(await database.query("SELECT name FROM tokens")).toEqual([{ name: "admin" }]);
    const { body } = await call(2, "GET", "/v1/nodes");
    expect(body.data).toHaveLength(3);
  });

  test("the command line of each data directory lists all of them", async () => {
    for (const name of ["a", "b"])
      expect(JSON.parse(await desk.out(["nodes", "--json", "--data", name], env))).toHaveLength(3);
  });

  test("after one was killed, its tasks go on elsewhere, and no tool is called twice", async () => {
    await call(0, "POST", "/v1/agents", AGENT);
    const added = await call(0, "POST", "/v1/connectors", {
      ...{ name: "up", kind: "mcp", transport: { type: "http", url: upstream.url } },
    });
    expect(added.status).toBe(201);
    // Each task calls the tool once, and then the model answers slowly enough to be killed.
    let asked = 0;
    model.script("slow", ({ body }) => {
      const done = body.messages.some((message) => message.role === "tool");
      if (!done) return { toolCalls: [{ name: "up__send", arguments: { id: `call-${asked++}` } }] };
      return { chunks: Array.from({ length: 30 }, (_, word) => `word ${word} `), delayMs: 100 };
    });
    const ids: string[] = [];
    for (let count = 0; count < 6; count++) {
      const { status, body } = await call(count % 3, "POST", "/v1/tasks", {
        agent: "helper",
        prompt: "Send it.",
        tools: ["up.send"],
      });
      expect(status).toBe(202);
      ids.push(String(body.id));
    }
    while (calls.size < 6) await Bun.sleep(20);
    await at(0).end("SIGKILL");
    let restarted = 0;
    for (const id of ids) {
      for (;;) {
        const { body } = await call(1, "GET", `/v1/tasks/${id}`);
        if (body.status === "succeeded") break;
        expect(["queued", "running"]).toContain(String(body.status));
        await Bun.sleep(100);
      }
      const response = await desk.call(at(2), admin, "GET", `/v1/tasks/${id}/events`);
      const events = await response.text();
      expect(events.match(/^event: task\.finished$/gm)).toHaveLength(1);
      if ((events.match(/^event: task\.started$/gm)?.length ?? 0) > 1) restarted++;
    }
    expect(restarted).toBeGreaterThan(0);
    expect([...calls.values()].filter((count) => count > 1)).toEqual([]);
    const { body } = await call(1, "GET", "/v1/nodes");
    expect(body.data).toHaveLength(2);
  });

  test("a frozen one goes on with another id when it wakes up", async () => {
    const before = (await call(1, "GET", "/v1/nodes")).body.data as { id: string }[];
    process.kill(at(2).pid, "SIGSTOP");
    try {
      for (;;) {
        const { body } = await call(1, "GET", "/v1/nodes");
        if ((body.data as unknown[]).length === 1) break;
        await Bun.sleep(200);
      }
    } finally {
      process.kill(at(2).pid, "SIGCONT");
    }
    for (;;) {
      const { status, body } = await call(2, "GET", "/v1/nodes");
      const after = status === 200 ? (body.data as { id: string }[]) : [];
      if (after.length === 2) {
        expect(after.filter(({ id }) => before.some((each) => each.id === id))).toHaveLength(1);
        break;
      }
      await Bun.sleep(200);
    }
  });

  test("an upgrade that changes nothing does not disturb them", async () => {
    expect(await desk.out(["store", "migrate", "--data", "b"], env)).toMatch(
      /^The schema has version \d+ already\.\n$/,
    );
    expect((await call(1, "GET", "/v1/agents")).status).toBe(200);
  });

  test("end in an orderly way, one after the other, and one that has left is not listed", async () => {
    const started = await desk.serve(["--data", "a"], env);
    expect(await started.end("SIGINT")).toBe(0);
    expect((await call(1, "GET", "/v1/nodes")).body.data).toHaveLength(2);
    expect(await at(1).end("SIGINT")).toBe(0);
    expect(await at(2).end("SIGTERM")).toBe(0);
    expect(await database.query("SELECT id FROM nodes")).toEqual([]);
  });
});

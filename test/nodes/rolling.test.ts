/** Two neighbouring versions share a store while one replaces the other, under constant load. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { AGENT, type Desk, openDesk } from "../cli/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";
import type { ServerProcess } from "../support/process.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(90_000);

const NEXT = [process.execPath, "--no-env-file", join(import.meta.dir, "next-version.ts")];

describe.skipIf(missingPostgres !== undefined)("an upgrade that rolls", () => {
  const earlier: Desk = openDesk();
  const next: Desk = openDesk({ program: NEXT });
  const admin = createSecret(systemRandom);
  let database: TestDatabase;
  let model: FakeModel;
  let env: Record<string, string> = {};

  beforeAll(async () => {
    database = await createDatabase();
    model = startFakeModel();
    model.script("quick", () => ({ chunks: ["a ", "word"], delayMs: 20 }));
    env = {
      GATEHOUSE_STORE: database.url,
      GATEHOUSE_MASTER_KEY: "7".repeat(64),
      GATEHOUSE_ADMIN_TOKEN: admin,
    };
    const yaml = `providers: { fake: { kind: openai-compatible, base_url: "${model.url}" } }\ntiers: { 1: { models: [fake/quick] } }\n`;
    for (const { cwd } of [earlier, next]) {
      for (const name of ["a", "b"]) {
        mkdirSync(join(cwd, name), { mode: 0o700 });
        writeFileSync(join(cwd, name, "gatehouse.yaml"), yaml);
      }
    }
  });

  afterAll(async () => {
    await earlier.clear();
    await next.clear();
    await model.close();
    await database.drop();
  });

  const call = async (server: ServerProcess, method: string, path: string, body?: object) => {
    const response = await earlier.call(server, admin, method, path, body);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  test("refuses no call and loses no task, and each version can be restarted while it rolls", async () => {
    const serving: ServerProcess[] = [];
    const a = await earlier.serve(["--data", "a"], env);
    const b = await earlier.serve(["--data", "b"], env);
    serving.push(a, b);
    expect((await call(a, "POST", "/v1/agents", AGENT)).status).toBe(201);
    expect(
      (await call(a, "PATCH", "/v1/workspace", { limits: { requests_per_minute: 1_000_000 } })).status,
    ).toBe(200);

    // As a load balancer does: nothing is sent to a server that is about to be stopped.
    const underWay = new Map<ServerProcess, number>();
    const leave = async (server: ServerProcess) => {
      serving.splice(serving.indexOf(server), 1);
      await until(() => (underWay.get(server) ?? 0) === 0);
      expect(await server.end("SIGTERM")).toBe(0);
    };
    const refused: unknown[] = [];
    const ids: string[] = [];
    let count = 0;
    async function callSome(method: string, path: string, body?: object): Promise<void> {
      const server = serving[count++ % serving.length];
      if (!server) throw new Error("a server is always there");
      underWay.set(server, (underWay.get(server) ?? 0) + 1);
      const answer = await call(server, method, path, body).finally(() =>
        underWay.set(server, (underWay.get(server) ?? 0) - 1),
      );
      if (answer.status >= 300) refused.push(answer);
      else if (answer.status === 202) ids.push(String(answer.body.id));
    }
    let isRolling = true;
    const load = Array.from({ length: 8 }, async () => {
      while (isRolling) {
        await callSome("GET", "/v1/agents/helper");
        await callSome("POST", "/v1/tasks", { agent: "helper", prompt: "Say a word." });
      }
    });
    let c: ServerProcess;
    try {
      const versions = async () =>
        (await database.query("SELECT MAX(version)::int AS version FROM gatehouse_schema"))[0]?.version;
      const before = Number(await versions());

      // The first server of the next version upgrades the schema under the load.
      c = await next.serve(["--data", "a"], env);
      expect(await versions()).toBe(before + 1);
      serving.push(c);
      await Bun.sleep(500);
      // One of the earlier version is started again before it is replaced.
      await leave(b);
      const again = await earlier.serve(["--data", "b"], env);
      serving.push(again);
      await Bun.sleep(500);
      await leave(a);
      await leave(again);
      await Bun.sleep(500);
    } finally {
      isRolling = false;
      await Promise.all(load);
    }

    expect(refused).toEqual([]);
    expect(ids.length).toBeGreaterThan(20);
    for (const id of ids) {
      for (;;) {
        const { body } = await call(c, "GET", `/v1/tasks/${id}`);
        if (body.status === "succeeded") break;
        expect(["queued", "running"]).toContain(String(body.status));
        await Bun.sleep(50);
      }
    }
    expect(await c.end("SIGTERM")).toBe(0);
    for (const version of [earlier, next]) {
      const { code, stderr } = await version.cli(["ledger", "verify", "--store"], env);
      expect([code, stderr]).toEqual([0, ""]);
    }
  });
});

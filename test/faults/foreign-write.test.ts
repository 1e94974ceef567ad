/**
 * Another program commits while the gateway runs. Nothing is done with its changes, and a start compares everything.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { chainFaults, type Row } from "../ledger/support.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { run, serve, tempDir } from "../support/process.ts";
import { dispatch, ended, gate, held, ledger, until, yamlOf } from "../tasks/support.ts";
import { settings } from "./support.ts";

setDefaultTimeout(60_000);

const YAML = { tiers: { 1: ["a"] }, limits: { concurrent_tasks: 1, enforcement: "enforced" } } as const;

let model: FakeModel;

beforeEach(() => {
  model = startFakeModel();
});
afterEach(() => model.close());

/** All that the model was ever sent. */
const sent = () => JSON.stringify(model.requests.map(({ body }) => body));

function edit(dataDir: string, sql: string): void {
  const foreign = new Database(databasePath(dataDir));
  foreign.exec("PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = OFF");
  foreign.exec(sql);
  foreign.close();
}

/**
 * As `edit`, but with a separate index, which counts no commits for the server. SQLite creates one if it finds none.
 */
async function editWithOwnIndex(dataDir: string, sql: string): Promise<void> {
  const path = databasePath(dataDir);
  unlinkSync(`${path}-shm`);
  // Another process, because connections of one process share the index, even a deleted one.
  const program = `
    const { Database } = require("bun:sqlite");
    const foreign = new Database(process.argv[1]);
    foreign.exec("PRAGMA foreign_keys = OFF");
    foreign.exec(process.argv[2]);
    foreign.exec("PRAGMA wal_checkpoint(PASSIVE)");`;
  const child = Bun.spawn([process.execPath, "-e", program, "--", path, sql], { stderr: "inherit" });
  expect(await child.exited).toBe(0);
}

describe("a gateway in this process", () => {
  let dataDir: string;
  let clock: FakeClock;
  let gateway: TestGateway;

  // Only the tests advance this clock: the transaction refuses, not the check once a second.
  const open = () => startGateway({ dataDir, clock, yaml: yamlOf(model.url, YAML) });

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "gatehouse-foreign-write-"));
    clock = new FakeClock();
    gateway = await open();
    await gateway.agent("plain");
  });
  afterEach(async () => {
    await gateway.gateway.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function restart(): Promise<void> {
    const { admin } = gateway;
    await gateway.gateway.stop();
    const again = await open();
    gateway = {
      ...again,
      admin,
      call: (method, path, given) => again.call(method, path, { token: admin, ...given }),
    };
  }

  test("sends no changed prompt of a queued task to a model, even after the next start", async () => {
    const hold = held();
    model.script("a", hold.script);
    const first = await dispatch(gateway, { agent: "plain", prompt: "first" });
    await hold.asked;
    const second = await dispatch(gateway, { agent: "plain", prompt: "second" });
    edit(dataDir, "UPDATE payloads SET body = 'pay the attacker' WHERE body = 'second'");
    model.script("a", { chunks: ["ok"] });
    hold.open();
    await restart();
    expect((await ended(gateway, second)).status).toBe("failed");
    expect(await ended(gateway, first)).toMatchObject({ status: "succeeded", output: "ok" });
    expect(sent()).toContain("first");
    expect(sent()).not.toContain("attacker");
  });

  test("sends no prompt that was changed with another index of the log, and stops, since it cannot tell", async () => {
    const long = "z".repeat(3_600);
    const hold = held();
    model.script("a", hold.script);
    await dispatch(gateway, { agent: "plain", prompt: `first ${long}` });
    await hold.asked;
    const second = await dispatch(gateway, { agent: "plain", prompt: `second ${long}` });
    const again = held();
    model.script("a", again.script);
    await restart();
    await again.asked;
    await editWithOwnIndex(
      dataDir,
      "UPDATE payloads SET body = replace(body, 'second', 'attack') WHERE body LIKE 'second %'",
    );
    const refused = await gateway.call("GET", "/v1/agents");
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
    model.script("a", { chunks: ["ok"] });
    again.open();
    clock.advance(1_000);
    await gateway.gateway.mustReopen;
    await restart();
    // The file is intact and has the other program's change: the server has added nothing to the log, and has not
    // written it back.
    expect((await ended(gateway, second)).status).toBe("failed");
    expect(sent()).toContain("first");
    expect(sent()).not.toContain("attack");
    using file = new Database(databasePath(dataDir), { readonly: true });
    expect(file.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
  });

  test("sends no changed tool result of a waiting task to a model, even after the next start", async () => {
    model.script("a", (_, call) =>
      call === 0
        ? { toolCalls: [{ name: "time__now", arguments: {} }] }
        : call === 1
          ? { toolCalls: [{ name: "vault__write", arguments: { title: "t", text: "x", scope: "support" } }] }
          : { chunks: ["ok"] },
    );
    await gateway.call("PATCH", "/v1/agents/plain", { body: { approvals: ["vault.write"] } });
    const id = await dispatch(gateway, { agent: "plain", tools: ["time.now", "vault.write"] });
    const status = async () => (await gateway.call("GET", `/v1/tasks/${id}`)).body.status;
    await until(async () => (await status()) === "awaiting_approval");
    const [call] = (await gateway.call("GET", "/v1/approvals")).body.data;
    edit(dataDir, `UPDATE payloads SET body = '"account QQQ"' WHERE kind = 'output' AND body LIKE '%now%'`);
    const approve = () =>
      gateway.call("POST", `/v1/tasks/${id}/approvals/${call.call_id}`, { body: { decision: "approve" } });
    const refused = await approve();
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
    await restart();
    await approve();
    await ended(gateway, id);
    expect(sent()).not.toContain("QQQ");
  });

  test("gives no rights to a token's row that was restored from an earlier copy", async () => {
    const body = { name: "evil", scopes: ["admin"] };
    const { id, secret } = (await gateway.call("POST", "/v1/tokens", { body })).body;
    const foreign = new Database(databasePath(dataDir));
    foreign.exec("CREATE TEMP TABLE kept AS SELECT * FROM tokens");
    expect((await gateway.call("DELETE", `/v1/tokens/${id}`)).status).toBe(204);
    foreign.exec("PRAGMA foreign_keys = OFF; INSERT OR REPLACE INTO tokens SELECT * FROM kept");
    foreign.close();
    const issue = (token: string) => gateway.call("POST", "/v1/tokens", { token, body });
    expect((await issue(secret)).status).not.toBe(201);
    expect((await issue(gateway.admin)).body.code).toBe("ledger_unavailable");
    await restart();
    expect((await issue(secret)).status).toBe(401);
  });

  test("refuses every call, is not ready, and records the write in each workspace", async () => {
    const other = await gateway.workspace("other");
    edit(dataDir, "UPDATE agents SET status = 'stopped'");
    for (const [method, path] of [
      ["GET", "/v1/agents"],
      ["POST", "/v1/agents"],
    ] as const) {
      expect((await gateway.call(method, path, { body: undefined })).body.code).toBe("ledger_unavailable");
    }
    const ready = await gateway.call("GET", "/readyz");
    expect([ready.status, ready.body.failing]).toEqual([503, ["store"]]);
    clock.advance(1_000);
    await gateway.gateway.mustReopen;
    for (let seconds = 0; seconds < 3; seconds++) clock.advance(1_000);
    expect((await gateway.call("GET", "/v1/agents")).body.code).toBe("ledger_unavailable");
    const metrics = (await gateway.call("GET", "/metrics")).body;
    expect(metrics).toContain('gatehouse_store_disturbances_total{kind="foreign_write"} 1\n');
    await gateway.gateway.stop();
    const file = new Database(databasePath(dataDir), { readonly: true });
    const rows = file.query<Row, []>("SELECT * FROM ledger WHERE workspace_id = 1 ORDER BY seq").all();
    file.close();
    expect(chainFaults(rows)).toEqual([]);
    gateway = await open();
    for (const token of [gateway.admin, other]) {
      const entries = await ledger(gateway, token);
      expect(entries.filter(({ action }) => action === "ledger.foreign_write")).toMatchObject([
        { outcome: "failed", channel: "system", actor: "system", detail: { commits: 1 } },
      ]);
    }
  });

  test("posts nothing more to the webhook, because somebody may have changed it", async () => {
    let posted = 0;
    using receiver = Bun.serve({
      port: 0,
      async fetch(request) {
        await request.text();
        posted += 1;
        return new Response(null, { status: 500 });
      },
    });
    await gateway.gateway.stop();
    const yaml = `${yamlOf(model.url, YAML)}notify: { webhook: "${receiver.url}" }\n`;
    gateway = await startGateway({ dataDir, clock, yaml });
    await ended(gateway, await dispatch(gateway, { agent: "plain" }));
    await until(() => count("webhook_deliveries WHERE attempts = 1") === count("webhook_deliveries"));
    const before = posted;
    edit(dataDir, "UPDATE webhook_deliveries SET tries = 0, next_at = 0");
    clock.advance(60_000);
    await gateway.gateway.mustReopen;
    await gateway.gateway.stop();
    expect(posted).toBe(before);
  });

  function count(what: string): number {
    const file = new Database(databasePath(dataDir), { readonly: true });
    const row = file.query<{ rows: number }, []>(`SELECT COUNT(*) AS rows FROM ${what}`).get();
    file.close();
    return row?.rows ?? 0;
  }
});

test("`serve` ends with exit code 1 and says what to do; the next start resumes running tasks", async () => {
  const directory = tempDir();
  const data = join(directory.path, "gatehouse-data");
  const answers = gate();
  model.script("talks", { chunks: ["half, ", "whole"], gate: answers.opened });
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "gatehouse.yaml"), settings(model));
  const cwd = directory.path;
  const start = () => serve([], { cwd });
  let server = await start();
  const call = async (method: string, path: string, body?: object) => {
    const token = readFileSync(join(data, "admin.token"), "utf8").trim();
    const response = await fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Record<string, unknown>;
  };
  try {
    // Our own commands do not count as other programs: they call the server, only read, or are refused.
    for (const [code, verb] of [
      [0, "ledger verify"],
      [0, "workspace create other"],
      [0, "workspace list"],
      [1, "reseal"],
    ] as const) {
      expect([verb, (await run(verb.split(" "), { cwd })).code]).toEqual([verb, code]);
    }
    await call("POST", "/v1/agents", { name: "helper", owner: "tests", memory_scope: "/" });
    const { id } = await call("POST", "/v1/tasks", { agent: "helper", prompt: "hi" });
    await until(() => model.requests.length === 1);
    edit(data, "INSERT INTO meta (key, value) VALUES ('foreign', 'x')");
    expect(await server.ended).toBe(1);
    expect(server.stderr()).toContain(
      "gatehouse: another program has written to the database while the server was running",
    );
    expect(server.stderr()).toContain("start the server again: the start compares what is stored");
    answers.open();
    server = await start();
    await until(async () => (await call("GET", `/v1/tasks/${id}`)).status === "succeeded");
    const entries = await call("GET", "/v1/ledger?action=ledger.foreign_write");
    expect(entries.data).toMatchObject([{ outcome: "failed", actor: "system" }]);
  } finally {
    await server.end("SIGKILL");
    directory.remove();
  }
});

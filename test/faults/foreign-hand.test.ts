/**
 * Somebody else writes to the data directory of a running server. The server notices, reports it everywhere, and
 * loses nothing.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { chainFaults, type Row } from "../ledger/support.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { dispatch, held, ledger, run, until, yamlOf } from "../tasks/support.ts";

let dataDir: string;
let path: string;
let clock: FakeClock;
let model: FakeModel;
let gateway: TestGateway;

const open = () => {
  const yaml = yamlOf(model.url, { tiers: { 1: ["a"] } });
  return startGateway({ dataDir, clock, yaml });
};

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-foreign-"));
  path = databasePath(dataDir);
  clock = new FakeClock();
  model = startFakeModel();
  gateway = await open();
  await gateway.agent("plain");
});

afterEach(async () => {
  await gateway.gateway.stop();
  await model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const entriesOf = async (action: string, token?: string) =>
  (await ledger(gateway, token)).filter((entry) => entry.action === action);

const counted = async (kind: string) => {
  const { body } = await gateway.call("GET", "/metrics");
  const line = new RegExp(`^gatehouse_store_disturbances_total\\{kind="${kind}"\\} (\\d+)$`, "m");
  return Number(line.exec(body)?.[1] ?? 0);
};

const isUnready = async () => {
  const { status, body } = await gateway.call("GET", "/readyz");
  return status === 503 && body.failing.join() === "store";
};

const isReady = async () => (await gateway.call("GET", "/readyz")).status === 200;

/** Lets the watch check the files each second until the condition holds. A check that is still busy skips a second. */
async function later(condition: () => boolean | Promise<boolean>): Promise<void> {
  await until(() => {
    clock.advance(1_000);
    return condition();
  });
}

test("nothing that the gateway itself does counts as a foreign write", async () => {
  const document = { title: "A", text: "a sloop", scope: "/" };
  expect((await run(gateway, { agent: "plain" })).status).toBe("succeeded");
  const { body } = await gateway.call("POST", "/v1/vault/documents", { body: document });
  expect((await gateway.call("POST", "/v1/vault/search", { body: { query: "sloop" } })).status).toBe(200);
  // A deletion empties the write-ahead log, and later the whole store is rewritten.
  expect((await gateway.call("DELETE", `/v1/vault/documents/${body.id}`)).status).toBe(204);
  for (let seconds = 0; seconds < 60; seconds++) {
    clock.advance(1_000);
    await gateway.call("GET", "/readyz");
  }
  const reader = new Database(path, { readonly: true });
  reader.query("SELECT COUNT(*) FROM ledger").get();
  reader.close();
  clock.advance(1_000);
  await gateway.gateway.stop();
  gateway = await open();
  expect(await entriesOf("ledger.foreign_write")).toEqual([]);
});

test("a stop takes effect while another program has the store's lock, and is recorded once the lock is free", async () => {
  const hold = held();
  model.script("a", hold.script);
  await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  const foreign = new Database(path);
  foreign.exec("BEGIN IMMEDIATE");
  let isAnswered = false;
  const stopping = gateway.call("POST", "/v1/agents/plain/stop").finally(() => {
    isAnswered = true;
  });
  await until(() => model.requests[0]?.aborted === true);
  const dispatching = gateway.call("POST", "/v1/tasks", { body: { agent: "plain", prompt: "hi" } });
  expect(isAnswered).toBe(false);
  foreign.exec("ROLLBACK");
  foreign.close();
  const stopped = await stopping;
  expect([stopped.status, stopped.body.status]).toEqual([200, "stopped"]);
  const [entry] = await entriesOf("oversight.stop");
  expect(Number(stopped.headers.get("gatehouse-ledger"))).toBe(entry?.seq ?? 0);
  expect(entry?.detail).toBeNull();
  expect((await dispatching).body.code).toBe("agent_stopped");
  expect(model.requests).toHaveLength(1);
});

describe("a database that was moved", () => {
  const away = () => `${path}.away`;

  test("causes calls to be refused until it is back; stops take effect in the meantime, and nothing is sent", async () => {
    const hold = held();
    model.script("a", hold.script);
    await dispatch(gateway, { agent: "plain" });
    await hold.asked;
    renameSync(path, away());
    await later(isUnready);
    const refused = await gateway.call("POST", "/v1/tasks", { body: { agent: "plain", prompt: "hi" } });
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
    expect((await gateway.call("POST", "/v1/agents/plain/stop")).body.status).toBe("stopped");
    await until(() => model.requests[0]?.aborted === true);
    expect(model.requests).toHaveLength(1);
    expect(await counted("file_moved")).toBe(1);
    renameSync(away(), path);
    await later(isReady);
    await later(async () => (await entriesOf("oversight.stop")).length === 1);
    const changes = await entriesOf("ledger.file_moved");
    expect(changes.map(({ detail }) => detail)).toEqual([
      { file: "database", change: "moved" },
      { file: "database", change: "returned" },
    ]);
    expect((await gateway.call("GET", "/v1/agents/plain")).body.status).toBe("stopped");
  });

  test("loses nothing that was acknowledged, even if the process ends before it is back", async () => {
    renameSync(path, away());
    await later(isUnready);
    await gateway.gateway.stop();
    renameSync(away(), path);
    gateway = await open();
    const file = new Database(path, { readonly: true });
    const rows = file.query<Row, []>("SELECT * FROM ledger WHERE workspace_id = 1 ORDER BY seq").all();
    file.close();
    expect(chainFaults(rows)).toEqual([]);
    expect(await entriesOf("agent.create")).toHaveLength(1);
    expect(await entriesOf("ledger.file_moved")).toMatchObject([{ detail: { change: "moved" } }]);
  });
});

test("a deleted database causes calls to be refused, and a restart fails because it is missing", async () => {
  unlinkSync(path);
  await later(isUnready);
  const refused = await gateway.call("GET", "/v1/agents");
  expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
  expect((await gateway.call("POST", "/v1/agents/plain/stop")).body.status).toBe("stopped");
  await gateway.gateway.stop();
  await expect(open()).rejects.toThrow(
    "there is no ledger, although the key of this data directory has signed one",
  );
  // Starting over is a decision: first move the key and the files of the refused start away.
  for (const name of ["ledger.key", "gatehouse.db", "gatehouse.db-wal", "gatehouse.db-shm"]) {
    rmSync(join(dataDir, name), { force: true });
  }
  gateway = await open();
  expect((await gateway.call("GET", "/v1/agents")).body.data).toEqual([]);
});

/**
 * A store that can be neither read nor written: everything that memory knows about can still be stopped and
 * cancelled.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { dispatch, ended, held, ledger, run, unsettled, until, yamlOf } from "../tasks/support.ts";

let dataDir: string;
let clock: FakeClock;
let model: FakeModel;
let gateway: TestGateway;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-unreadable-"));
  clock = new FakeClock();
  model = startFakeModel();
  const limits = { concurrent_tasks: 1, enforcement: "enforced" };
  gateway = await startGateway({ dataDir, clock, yaml: yamlOf(model.url, { tiers: { 1: ["a"] }, limits }) });
  await gateway.agent("plain");
});

afterEach(async () => {
  await mend();
  await gateway.stop();
  await model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Runs in a separate process: closing a descriptor of the database file in this one would release SQLite's locks. */
async function elsewhere(program: string): Promise<void> {
  const child = Bun.spawn([process.execPath, "-e", program, "--", databasePath(dataDir)], { stderr: "pipe" });
  if ((await child.exited) !== 0) throw new Error(await new Response(child.stderr).text());
}

/** Overwrites all pages but the first, as a failing disk does: reading one is an error (SQLITE_CORRUPT). */
async function spoil(): Promise<void> {
  const own = ownConnection(dataDir);
  own.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  await elsewhere(`
    import { closeSync, copyFileSync, openSync, statSync, writeSync } from "node:fs";
    const path = process.argv[1];
    copyFileSync(path, path + ".whole");
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(statSync(path).size - 4096, 0xff), 0, undefined, 4096);
    closeSync(file);`);
  forgetPages();
  const unread = await gateway.call("GET", "/v1/agents");
  expect([unread.status, unread.body.code]).toEqual([503, "ledger_unavailable"]);
}

/**
 * Makes the server read its pages again. Another program's commit would not do, because the store refuses writes
 * after it.
 */
function forgetPages(): void {
  const own = ownConnection(dataDir);
  own.exec("PRAGMA shrink_memory");
}

async function mend(): Promise<void> {
  await elsewhere(`
    import { closeSync, existsSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
    const path = process.argv[1];
    if (!existsSync(path + ".whole")) process.exit(0);
    const file = openSync(path, "r+");
    writeSync(file, readFileSync(path + ".whole"), 0, undefined, 0);
    closeSync(file);
    rmSync(path + ".whole");`);
  forgetPages();
  // A commit, after which the readers read their pages again.
  ownConnection(dataDir).exec("UPDATE meta SET value = 'mended' WHERE key = 'ready'");
}

async function later(condition: () => boolean | Promise<boolean>): Promise<void> {
  await until(async () => {
    if (await condition()) return true;
    clock.advance(1_000);
    return false;
  });
}

const recorded = async (action: string) =>
  (await ledger(gateway)).filter((entry) => entry.action === action && entry.outcome === "succeeded");

test("a running task can be cancelled", async () => {
  const hold = held();
  model.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  await spoil();
  const cancelled = await gateway.call("POST", `/v1/tasks/${id}/cancel`);
  expect([cancelled.status, cancelled.body.status]).toEqual([200, "cancelled"]);
  await until(() => model.requests[0]?.aborted === true);
  await mend();
  await later(async () => (await recorded("task.cancel")).length === 1);
  expect((await ended(gateway, id)).status).toBe("cancelled");
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("an agent can be stopped, with its running and waiting tasks", async () => {
  const hold = held();
  model.script("a", hold.script);
  const ids = [await dispatch(gateway, { agent: "plain" })];
  await hold.asked;
  for (let more = 0; more < 3; more++) ids.push(await dispatch(gateway, { agent: "plain" }));
  await spoil();
  const stopped = await gateway.call("POST", "/v1/agents/plain/stop");
  expect([stopped.status, stopped.body.status]).toEqual([200, "stopped"]);
  await until(() => model.requests[0]?.aborted === true);
  await mend();
  expect((await gateway.call("GET", "/v1/agents/plain")).body.status).toBe("stopped");
  await later(async () => (await recorded("oversight.stop")).length === 1);
  for (const id of ids) {
    await later(
      async () => (await gateway.call("GET", `/v1/tasks/${id}`)).body.error?.code === "agent_stopped",
    );
  }
  expect(model.requests).toHaveLength(1);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("a decision that needs the store is refused: on a waiting task, on another tenant's task, by an unknown token", async () => {
  const hold = held();
  model.script("a", hold.script);
  const running = await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  const waiting = await dispatch(gateway, { agent: "plain" });
  const stranger = await gateway.workspace("other");
  expect((await gateway.call("GET", "/v1/agents", { token: stranger })).status).toBe(200);
  const unseen = await gateway.token({ scopes: ["admin"] });
  await spoil();
  for (const [path, token] of [
    [`/v1/tasks/${waiting}/cancel`, gateway.admin],
    [`/v1/tasks/${running}/cancel`, stranger],
    ["/v1/agents/plain/stop", stranger],
    ["/v1/agents/plain/stop", unseen],
  ] as const) {
    const refused = await gateway.call("POST", path, { token });
    expect([path, refused.status, refused.body.code]).toEqual([path, 503, "ledger_unavailable"]);
  }
  await mend();
  hold.open();
  for (const id of [running, waiting]) {
    await later(async () => (await gateway.call("GET", `/v1/tasks/${id}`)).body.status === "succeeded");
  }
  expect((await run(gateway, { agent: "plain" })).status).toBe("succeeded");
});

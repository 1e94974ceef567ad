/** Tasks at the moment of a stop, and while the store cannot be read or written. */

import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allEvents } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { dispatch, ended, held, ledger, openEvents, unsettled, until, yamlOf } from "./support.ts";

let upstream: FakeModel;
let gateway: TestGateway;
let dataDir: string;
let file: Database;
let yaml: string;

beforeEach(async () => {
  upstream = startFakeModel();
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-shutdown-"));
  yaml = yamlOf(upstream.url, {
    tiers: { 1: ["a"] },
    limits: { concurrent_tasks: 1, enforcement: "enforced" },
  });
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir });
  await gateway.agent("plain");
  file = ownConnection(dataDir);
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("a stop ends the streams of waiting tasks, and the next start runs them", async () => {
  const hold = held();
  upstream.script("a", hold.script);
  await dispatch(gateway, { agent: "plain" });
  const id = await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  const reading = allEvents(await openEvents(gateway, id));
  upstream.script("a", { chunks: ["done"] });
  await gateway.stop();
  expect((await reading).map(({ event }) => event)).toEqual(["task.created"]);
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir });
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "done" });
});

test("a cancel whose end cannot be written does not delay a stop, and the next start reports it correctly", async () => {
  const hold = held();
  upstream.script("a", hold.script);
  await dispatch(gateway, { agent: "plain" });
  const id = await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  file.run("CREATE TEMP TRIGGER full BEFORE UPDATE ON main.tasks BEGIN SELECT RAISE(ABORT, 'full'); END");
  const cancelling = gateway.call("POST", `/v1/tasks/${id}/cancel`).catch(() => null);
  // The task leaves the queue, although its end is not written.
  await until(async () => (await gateway.call("GET", "/v1/workspace")).body.usage.tasks_queued === 0);
  await gateway.stop();
  await cancelling;
  upstream.script("a", { chunks: ["done"] });
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir });
  expect((await ended(gateway, id)).status).toBe("succeeded");
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("a denied call does not prevent its task from running again, because it was never made", async () => {
  const hold = held({ chunks: ["half"] });
  upstream.script("a", (request, call) => {
    if (call === 0) return { toolCalls: [{ name: "no_such_tool", arguments: {} }] };
    return typeof hold.script === "function" ? hold.script(request, call) : hold.script;
  });
  const id = await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  upstream.script("a", { chunks: ["done"] });
  await gateway.stop();
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir });
  const task = await ended(gateway, id);
  expect(task).toMatchObject({ status: "succeeded", output: "done" });
  expect(task.tools_called).toMatchObject([{ tool: "no_such_tool", status: "denied" }]);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

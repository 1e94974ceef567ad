import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Desk, openDesk } from "./support.ts";

let desk: Desk;
beforeEach(() => {
  desk = openDesk();
});
afterEach(() => desk.clear());

test("without a server, says how to start one", async () => {
  const { code, stdout, stderr } = await desk.cli(["status"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("no server runs on the data directory");
  expect(stderr).toContain("gatehouse serve");
});

test("of a server, for programs and for people", async () => {
  const server = await desk.serve();
  await desk.out(["workspace", "create", "other"]);
  await desk.out(["workspace", "stop", "other"]);
  const found = JSON.parse(await desk.out(["status", "--json"]));
  expect(found).toMatchObject({
    ...{ url: server.url, store: "sqlite", ready: true, failing: [] },
    connectors: { ready: 0, failing: [] },
    workspaces: [
      { name: "default", status: "active", tasks_running: 0, tasks_queued: 0 },
      { name: "other", status: "stopped", tasks_running: 0, tasks_queued: 0 },
    ],
  });
  expect(found.workspaces[0].ledger_entries).toBeGreaterThan(0);
  expect(Date.parse(found.started_at)).toBeLessThanOrEqual(Date.now());
  const text = await desk.out(["status"]);
  expect(text).toContain(`is running at ${server.url} (process ${found.pid}) since ${found.started_at}.`);
  expect(text).toMatch(/\nIt is ready\.\n/);
  expect(text).toMatch(/\nother +stopped +0 +0 +\d+\n/);
});

test("is the operator's: no token reads it", async () => {
  const server = await desk.serve();
  const token = readFileSync(join(desk.cwd, "gatehouse-data", "admin.token"), "utf8").trim();
  const answer = await desk.call(server, token, "GET", "/operator/status");
  expect(answer.status).toBe(404);
  const { secret } = JSON.parse(readFileSync(join(desk.cwd, "gatehouse-data", "server.json"), "utf8"));
  const operator = await fetch(`${server.url}/operator/status`, {
    headers: { authorization: `Bearer ${secret}`, "gatehouse-operator": "tests" },
  });
  expect(operator.status).toBe(200);
});

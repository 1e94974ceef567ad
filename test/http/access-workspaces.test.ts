import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
/** The other workspace's admin token. */
let other: string;
let task: string;
let tokenId: string;
let secret: string;

beforeAll(async () => {
  gateway = await startGateway();
  other = await gateway.workspace("other");
  await gateway.agent("ours");
  task = await finishedTask(gateway, "ours");
  const issued = await gateway.call("POST", "/v1/tokens", { body: { name: "ours", scopes: ["tasks:read"] } });
  tokenId = issued.body.id;
  secret = issued.body.secret;
  // Makes our ledger longer than theirs: ours has an entry 90, theirs does not.
  for (let index = 0; index < 90; index++) await gateway.call("GET", "/v1/tiers");
});
afterAll(() => gateway.stop());

describe("a request for another workspace's resource returns 404, as if it did not exist", () => {
  const cases: readonly [method: string, path: string, body?: object][] = [
    ["GET", "/v1/agents/ours"],
    ["PATCH", "/v1/agents/ours", { owner: "thief" }],
    ["DELETE", "/v1/agents/ours"],
    ["POST", "/v1/agents/ours/stop"],
    ["POST", "/v1/agents/ours/resume"],
    ["POST", "/v1/tasks", { agent: "ours", prompt: "hi" }],
    ["POST", "/v1/tasks?stream=true", { agent: "ours", prompt: "hi" }],
    ["GET", "/v1/tasks/:task"],
    ["GET", "/v1/tasks/:task/events"],
    ["POST", "/v1/tasks/:task/cancel"],
    ["POST", "/v1/tokens", { name: "thief", agent: "ours" }],
    ["POST", "/v1/tokens/:token/rotate"],
    ["DELETE", "/v1/tokens/:token"],
    ["GET", "/v1/ledger/90"],
  ];
  test.each(cases.map(([method, path, body]) => ({ method, path, body })))("$method $path", async (row) => {
    const { method, path, body } = row;
    const made = path.replace(":task", task).replace(":token", tokenId);
    const absent = path
      .replace(":task", `${task.slice(0, -4)}0000`)
      .replace(":token", `${tokenId.slice(0, -4)}0000`)
      .replace("ours", "nobody")
      .replace("/90", "/999999");
    const ask = (at: string, sent?: object) =>
      gateway.call(method, at, { token: other, ...(sent ? { body: sent } : {}) });
    const theirs = await ask(made, body);
    const nothing = await ask(
      absent,
      body && JSON.parse(JSON.stringify(body).replace('"agent":"ours"', '"agent":"nobody"')),
    );
    expect(theirs.status).toBe(404);
    expect([nothing.status, nothing.body.code]).toEqual([404, theirs.body.code]);
    const shown = (body: { detail: string }) => body.detail.replace(/"[^"]*"/, "it");
    expect(shown(theirs.body)).toBe(shown(nothing.body));
  });

  test("and none of it was changed", async () => {
    const agent = await gateway.call("GET", "/v1/agents/ours");
    expect(agent.body).toMatchObject({ owner: "tests", status: "active", version: 1 });
    expect((await gateway.call("GET", "/v1/tasks", { token: secret })).status).toBe(200);
  });
});

test("lists of one workspace never show another workspace's items", async () => {
  for (const path of ["/v1/agents", "/v1/tasks", "/v1/tasks?agent=ours"]) {
    expect((await gateway.call("GET", path, { token: other })).body.data).toEqual([]);
  }
  const tokens = await gateway.call("GET", "/v1/tokens", { token: other });
  expect(tokens.body.data.map((token: { name: string }) => token.name)).toEqual(["admin"]);
  const ledger = await gateway.call("GET", "/v1/ledger?limit=200", { token: other });
  expect(JSON.stringify(ledger.body)).not.toContain(task);
  expect(ledger.body.data[0]).toMatchObject({ seq: 1, prev: "0".repeat(64) });
  expect((await gateway.call("GET", "/v1/workspace", { token: other })).body.name).toBe("other");
});

test("each workspace has its own names and its own ledger", async () => {
  const made = await gateway.call("POST", "/v1/agents", {
    token: other,
    body: { name: "ours", owner: "others", memory_scope: "/" },
  });
  expect(made.status).toBe(201);
  const entry = await gateway.call("GET", `/v1/ledger/${made.headers.get("gatehouse-ledger")}`, {
    token: other,
  });
  expect(entry.body).toMatchObject({ action: "agent.create", agent: "ours" });
  expect((await gateway.call("GET", "/v1/agents/ours")).body.owner).toBe("tests");
});

test("a call that belongs to no known workspace is recorded in default", async () => {
  await gateway.call("GET", "/v1/agents", { token: null });
  const found = async (token: string) =>
    (await gateway.call("GET", "/v1/ledger?action=auth.refused", { token })).body.data;
  expect(await found(other)).toEqual([]);
  expect(await found(gateway.admin)).toMatchObject([
    { actor: "anonymous", outcome: "denied", code: "unauthenticated", channel: "rest", phase: "single" },
  ]);
});

test("the operator's routes do not exist for any token, including an admin's", async () => {
  for (const token of [gateway.admin, other]) {
    const list = await gateway.call("GET", "/operator/workspaces", { token });
    const create = await gateway.call("POST", "/operator/workspaces", { token, body: { name: "more" } });
    expect([list.status, create.status]).toEqual([404, 404]);
    // For a token, the header with another workspace's name changes nothing.
    const headers = { "gatehouse-operator": "root", "gatehouse-workspace": "other" };
    const named = await gateway.call("GET", "/v1/workspace", { token, headers });
    expect(named.body.name).toBe(token === other ? "other" : "default");
  }
});

/** The feed of a workspace, on other nodes than the one where a change was made. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type FeedClient, openFeed } from "../http/feed-support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { dispatch, yamlOf } from "../tasks/support.ts";

setDefaultTimeout(60_000);

const ASKS = { chunks: ["let me look"], toolCalls: [{ name: "time__now", arguments: {} }] };

describe.skipIf(missingPostgres !== undefined)("the feed of another node", () => {
  let upstream: FakeModel;
  let started: TestNodes;
  let first: TestGateway;
  let second: TestGateway;
  const open: FeedClient[] = [];

  beforeAll(async () => {
    upstream = startFakeModel();
    started = await startNodes(2, { yaml: yamlOf(upstream.url, { tiers: { 1: ["a"] } }) });
    [first, second] = started.nodes as [TestGateway, TestGateway];
    await first.agent("careful", { approvals: ["time.*"] });
    await first.agent("plain");
  });

  afterEach(() => {
    for (const feed of open.splice(0)) feed.leave();
  });

  afterAll(async () => {
    await started.stop();
    await upstream.close();
  });

  async function listen(token = first.admin): Promise<FeedClient> {
    const feed = await openFeed(second, token);
    open.push(feed);
    return feed;
  }

  test("does not tell a token what it may not read", async () => {
    const token = await first.token({ scopes: ["tasks:read"] });
    const [narrow, whole] = [await listen(token), await listen()];
    const id = await dispatch(first, { agent: "plain" });
    await whole.saw("task.changed", (task) => task.id === id && task.status === "succeeded");
    await narrow.saw("task.changed", (task) => task.id === id && task.status === "succeeded");
    await first.call("POST", "/v1/vault/documents", {
      body: { title: "A", scope: "support", text: "A text." },
    });
    await whole.saw("document.changed");
    const last = await dispatch(first, { agent: "plain" });
    await narrow.saw("task.changed", (task) => task.id === last && task.status === "succeeded");
    expect(narrow.named("document.changed")).toEqual([]);
    expect(narrow.named("ledger.grown")).toEqual([]);
  });

  test("shows a task, the approval of its call, and the ledger", async () => {
    const feed = await listen();
    upstream.script("a", (_request, call) => (call === 0 ? ASKS : { chunks: ["done"] }));
    const task = await dispatch(first, { agent: "careful", tools: ["time.now"] });
    const { data } = await feed.saw("approval.changed", (approval) => approval.task === task);
    expect(data).toMatchObject({ task, agent: "careful", tool: "time.now", status: "pending" });
    await feed.saw("task.changed", ({ id, status }) => id === task && status === "awaiting_approval");
    await feed.saw("usage", ({ approvals_pending }) => approvals_pending === 1);
    await feed.saw("ledger.grown", ({ size }) => size > 1);
    const path = `/v1/tasks/${task}/approvals/${data.call_id}`;
    expect((await first.call("POST", path, { body: { decision: "approve" } })).status).toBe(200);
    await feed.saw("approval.changed", ({ status }) => status === "approved");
    await feed.saw("task.changed", ({ id, status }) => id === task && status === "succeeded");
  });

  test("counts the tasks of all nodes", async () => {
    const feed = await listen();
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream.script("a", { chunks: ["held"], gate: promise });
    await dispatch(first, { agent: "plain" });
    await feed.saw("usage", ({ tasks_running }) => tasks_running === 1);
    resolve();
    await feed.saw("usage", ({ tasks_running }) => tasks_running === 0);
  });

  test("shows a connector that is added and removed", async () => {
    const feed = await listen();
    const spec = {
      ...{ openapi: "3.1.0", info: { title: "Pets", version: "1" } },
      paths: { "/pets": { get: { operationId: "list", responses: { "200": { description: "Pets" } } } } },
    };
    const body = { name: "pets", kind: "openapi", base_url: "http://127.0.0.1:9", spec };
    expect((await first.call("POST", "/v1/connectors", { body })).status).toBe(201);
    await feed.saw("connector.changed", ({ name, status }) => name === "pets" && status === "ready");
    await first.call("DELETE", "/v1/connectors/pets");
    await feed.saw("connector.changed", ({ name, status }) => name === "pets" && status === "removed");
  });

  test("shows documents, agents, tokens and limits", async () => {
    const feed = await listen();
    const added = await first.call("POST", "/v1/vault/documents", {
      body: { title: "Handbook", scope: "support", text: "Ask first." },
    });
    expect(added.status).toBe(201);
    await feed.saw("document.changed", ({ id, change }) => id === added.body.id && change === "written");
    expect((await first.call("DELETE", `/v1/vault/documents/${added.body.id}`)).status).toBe(204);
    await feed.saw("document.changed", ({ id, change }) => id === added.body.id && change === "deleted");
    await first.agent("later");
    await feed.saw("agent.changed", ({ name }) => name === "later");
    await first.token({ scopes: ["tasks:read"] });
    await feed.saw("token.changed");
    await first.call("PATCH", "/v1/workspace", { body: { limits: { concurrent_tasks: 7 } } });
    await feed.saw("workspace.changed");
  });
});

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type FeedClient, openFeed, settled } from "./feed-support.ts";

setDefaultTimeout(60_000);

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("plain");
});
afterAll(() => gateway.stop());

/** The events of these names that a client received, in order. */
const told = (client: FeedClient, ...names: readonly string[]) =>
  client.events.filter(({ event }) => names.includes(event)).map(({ event, data }) => [event, data]);

/** The events of these names while `work` runs. */
async function during(names: readonly string[], work: () => Promise<unknown>): Promise<unknown[]> {
  const feed = await openFeed(gateway);
  await work();
  await settled(gateway, [feed]);
  feed.leave();
  return told(feed, ...names);
}

describe("opening it", () => {
  test("needs a token", async () => {
    for (const token of [null, "gth_unknown"]) {
      expect((await gateway.call("GET", "/v1/events", { token })).status).toBe(401);
    }
  });

  test("needs no scope, does not count, and is one entry however long it is open", async () => {
    const feed = await openFeed(gateway, await gateway.token({ scopes: ["tools:*"] }));
    await settled(gateway, [feed]);
    const { body } = await gateway.call("GET", "/v1/ledger?action=events.read&order=desc&limit=1");
    expect(body.data[0]).toMatchObject({ action: "events.read", outcome: "succeeded", phase: "single" });
    const size = body.data[0].seq;
    await settled(gateway, [feed]);
    const after = await gateway.call("GET", `/v1/ledger?action=events.read&order=desc&limit=1`);
    expect(after.body.data[0].seq).toBe(size);
    feed.leave();
  });

  test("takes no parameters", async () => {
    expect((await gateway.call("GET", "/v1/events?after=1")).status).toBe(422);
  });

  test("answers with a stream whose ids count from 1 and whose first event is feed.open", async () => {
    const response = await fetch(`${gateway.url}/v1/events`, {
      headers: { authorization: `Bearer ${gateway.admin}` },
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    expect(response.headers.get("ratelimit")).toBeNull();
    expect(response.headers.get("gatehouse-ledger")).toMatch(/^\d+$/);
    await response.body?.cancel();
    const feed = await openFeed(gateway);
    await settled(gateway, [feed]);
    expect(feed.events.map(({ id }) => id)).toEqual(feed.events.map((_, index) => index + 1));
    expect(feed.events[0]?.event).toBe("feed.open");
    feed.leave();
  });
});

describe("it reports", () => {
  test("a task, without its texts, and only committed changes", async () => {
    const feed = await openFeed(gateway);
    const id = await finishedTask(gateway, "plain", "a very private question");
    const { data } = await feed.saw("task.changed", ({ status }) => status === "succeeded");
    const { body } = await gateway.call("GET", `/v1/tasks/${id}`);
    const { prompt, tools, output, tools_called, usage, metadata, ...rest } = body;
    expect(data).toEqual({ ...rest, steps: usage.steps });
    expect(JSON.stringify(feed.events)).not.toContain("private");
    feed.leave();
  });

  test("an agent that is created, changed, stopped, resumed and archived", async () => {
    const steps: readonly (readonly [string, string, object?])[] = [
      ["PATCH", "", { owner: "somebody else" }],
      ["POST", "/stop"],
      ["POST", "/resume"],
      ["DELETE", ""],
    ];
    const feed = await openFeed(gateway);
    await gateway.agent("brief");
    await settled(gateway, [feed]);
    for (const [method, path, body] of steps) {
      await gateway.call(method, `/v1/agents/brief${path}`, body ? { body } : {});
      await settled(gateway, [feed]);
    }
    feed.leave();
    const name = "brief";
    expect(feed.named("agent.changed")).toEqual([
      { name, status: "active", version: 1 },
      { name, status: "active", version: 2 },
      { name, status: "stopped", version: 3 },
      { name, status: "active", version: 4 },
      { name, status: "archived", version: 4 },
    ]);
  });

  test("an agent with an archived agent's name, and not the old one again", async () => {
    const events = await during(["agent.changed"], async () => {
      await gateway.agent("again");
      await gateway.call("DELETE", "/v1/agents/again");
      await gateway.agent("again");
    });
    expect(events.at(-1)).toEqual(["agent.changed", { name: "again", status: "active", version: 1 }]);
  });

  test("the workspace's limits and budget, its stop and its resume", async () => {
    const feed = await openFeed(gateway);
    await gateway.call("PATCH", "/v1/workspace", {
      body: { limits: { requests_per_minute: 700 }, budget: { credits_per_month: 5 } },
    });
    await feed.saw("workspace.changed", ({ budget }) => budget.credits_per_month === 5);
    await gateway.call("POST", "/v1/workspace/stop");
    await feed.saw("workspace.changed", ({ status }) => status === "stopped");
    await gateway.call("POST", "/v1/workspace/resume");
    await gateway.call("PATCH", "/v1/workspace", {
      body: { limits: { requests_per_minute: 100_000 }, budget: { credits_per_month: null } },
    });
    const { data } = await feed.saw("workspace.changed", ({ budget, status }) => {
      return budget.credits_per_month === null && status === "active";
    });
    const { body } = await gateway.call("GET", "/v1/workspace");
    expect(data).toEqual({ status: body.status, limits: body.limits, budget: body.budget });
    feed.leave();
  });

  test("a connector that is added and removed", async () => {
    const spec = {
      ...{ openapi: "3.1.0", info: { title: "Pets", version: "1" } },
      paths: { "/pets": { get: { operationId: "list", responses: { "200": { description: "Pets" } } } } },
    };
    const feed = await openFeed(gateway);
    const body = { name: "pets", kind: "openapi", base_url: "http://127.0.0.1:9", spec };
    expect((await gateway.call("POST", "/v1/connectors", { body })).status).toBe(201);
    await feed.saw("connector.changed", ({ status }) => status === "ready");
    await gateway.call("DELETE", "/v1/connectors/pets");
    await feed.saw("connector.changed", ({ status }) => status === "removed");
    expect(feed.named("connector.changed").map(({ name }) => name)).toEqual(["pets", "pets"]);
    feed.leave();
  });

  test("that tokens were issued, rotated or revoked, but not which", async () => {
    const feed = await openFeed(gateway);
    const { body } = await gateway.call("POST", "/v1/tokens", { body: { name: "x", scopes: ["tools:*"] } });
    await settled(gateway, [feed]);
    await gateway.call("POST", `/v1/tokens/${body.id}/rotate`);
    await settled(gateway, [feed]);
    await gateway.call("DELETE", `/v1/tokens/${body.id}`);
    await settled(gateway, [feed]);
    expect(feed.named("token.changed")).toEqual([{}, {}, {}]);
    feed.leave();
  });

  test("documents that are written, moved and deleted", async () => {
    const write = (scope: string, id?: string) =>
      gateway.call("POST", "/v1/vault/documents", { body: { title: "T", text: "A text.", scope, id } });
    const feed = await openFeed(gateway);
    const { id } = (await write("support")).body;
    await settled(gateway, [feed]);
    await write("legal", id);
    await settled(gateway, [feed]);
    await gateway.call("DELETE", `/v1/vault/documents/${id}`);
    await settled(gateway, [feed]);
    feed.leave();
    expect(feed.named("document.changed")).toEqual([
      { id, scope: "support", change: "written" },
      { id, scope: "legal", change: "written" },
      { id, scope: "legal", change: "deleted" },
    ]);
  });

  test("the ledger's growth and what is in use", async () => {
    const feed = await openFeed(gateway);
    const { data: usage } = await feed.saw("usage");
    expect(usage).toEqual({
      tasks_running: 0,
      tasks_queued: 0,
      requests_left: expect.any(Number),
      requests_per_minute: 100_000,
      approvals_pending: 0,
    });
    const seq = Number((await gateway.call("GET", "/v1/agents")).headers.get("gatehouse-ledger"));
    await feed.saw("ledger.grown", ({ size }) => size >= seq);
    feed.leave();
  });

  test("a limit that is exceeded", async () => {
    const secret = await gateway.workspace("small");
    const feed = await openFeed(gateway, secret);
    await gateway.call("PATCH", "/v1/workspace", {
      ...{ token: secret, body: { limits: { requests_per_minute: 1 } } },
    });
    for (let times = 0; times < 3; times++) await gateway.call("GET", "/v1/agents", { token: secret });
    const { data } = await feed.saw("limit.exceeded");
    expect(data).toEqual({ limit: "requests", enforcement: "soft" });
    const left = await feed.saw("usage", ({ requests_per_minute }) => requests_per_minute === 1);
    expect(left.data.requests_left).toBeLessThanOrEqual(1);
    feed.leave();
  });
});

describe("it does not report", () => {
  test("another workspace", async () => {
    const secret = await gateway.workspace("other");
    const [own, other] = [await openFeed(gateway), await openFeed(gateway, secret)];
    await finishedTask(gateway, "plain");
    await gateway.agent("unseen");
    await gateway.call("POST", "/v1/vault/documents", {
      body: { title: "T", text: "A text.", scope: "support" },
    });
    await gateway.token({ scopes: ["tools:*"] });
    await settled(gateway, [own]);
    await settled(gateway, [other], secret);
    const names = new Set(own.events.map(({ event }) => event));
    for (const name of ["task.changed", "agent.changed", "document.changed", "token.changed"]) {
      expect(names).toContain(name);
      expect(other.named(name)).toEqual([]);
    }
    own.leave();
    other.leave();
  });

  test("to an agent's token anything of another agent, or outside its memory scope", async () => {
    await gateway.agent("one", { memory_scope: "one" });
    await gateway.agent("two", { memory_scope: "two" });
    const scopes = ["tasks:read", "vault:read", "agents:read", "tokens:write", "approvals:write"];
    const feed = await openFeed(gateway, await gateway.token({ agent: "one", scopes }));
    const admin = await openFeed(gateway);
    const ids: Record<string, string> = {};
    for (const agent of ["one", "two"]) {
      ids[agent] = await finishedTask(gateway, agent);
      await gateway.call("POST", "/v1/vault/documents", {
        body: { title: "T", text: "A text.", scope: `${agent}/below` },
      });
      await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { owner: "x" } });
    }
    await gateway.token({ agent: "two" });
    await settled(gateway, [feed, admin]);
    expect(new Set(feed.named("task.changed").map(({ id }) => id))).toEqual(new Set([ids.one]));
    expect(feed.named("document.changed").map(({ scope }) => scope)).toEqual(["one/below"]);
    expect(feed.named("agent.changed").map(({ name }) => name)).toEqual(["one"]);
    expect(feed.named("token.changed")).toEqual([]);
    expect(feed.named("feed.reset")).toEqual([]);
    expect(new Set(admin.named("task.changed").map(({ id }) => id))).toEqual(new Set(Object.values(ids)));
    for (const client of [feed, admin]) client.leave();
  });

  test("documents outside a memory scope once it is narrowed, and of moved ones only that they are gone", async () => {
    await gateway.agent("narrow", { memory_scope: ["open", "closed"] });
    const feed = await openFeed(gateway, await gateway.token({ agent: "narrow" }));
    const write = async (scope: string, id?: string): Promise<string> => {
      const body = { title: "T", text: "A text.", scope, id };
      return (await gateway.call("POST", "/v1/vault/documents", { body })).body.id;
    };
    const moved = await write("open/a");
    await write("closed/a");
    await settled(gateway, [feed]);
    await gateway.call("PATCH", "/v1/agents/narrow", { body: { memory_scope: "open" } });
    await write("closed/b");
    await write("elsewhere", moved);
    await settled(gateway, [feed]);
    const events = told(feed, "document.changed", "feed.reset");
    expect(events.map(([event, { scope, change } = {}]) => [event, scope, change])).toEqual([
      ["document.changed", "open/a", "written"],
      ["document.changed", "closed/a", "written"],
      ["feed.reset", undefined, undefined],
      ["document.changed", "open/a", "deleted"],
    ]);
    feed.leave();
  });
});

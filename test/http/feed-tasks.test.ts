import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { type ReadEvent, readEvents } from "../support/events.ts";
import { dispatch, ended, type Stage, startStage, until } from "../tasks/support.ts";
import { openFeed, settled } from "./feed-support.ts";

setDefaultTimeout(120_000);

const HOUR_MS = 3_600_000;
const TASKS = 1_000;
const ASKS = { chunks: ["let me look"], toolCalls: [{ name: "time__now", arguments: {} }] };

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"], 2: ["builtin/extractive"] }, prices: { a: [1, 1] } });
  await stage.gateway.agent("careful", { approvals: ["time.*"] });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

const asking = () =>
  stage.upstream.script("a", (_request: unknown, call: number) => (call === 0 ? ASKS : { chunks: ["done"] }));
const ask = () => dispatch(stage.gateway, { agent: "careful", tools: ["time.now"] });

describe("a call that waits for a person is reported", () => {
  test("as pending and then approved, its task as waiting and after each step", async () => {
    const { gateway } = stage;
    const feed = await openFeed(gateway);
    asking();
    const task = await ask();
    const { data } = await feed.saw("approval.changed");
    expect(data).toEqual({
      ...{ task, call_id: expect.any(String), agent: "careful", tool: "time.now", status: "pending" },
    });
    const waiting = await feed.saw("task.changed", ({ status }) => status === "awaiting_approval");
    expect(waiting.data).toMatchObject({ id: task, steps: 1, model: "up/a", started_at: expect.any(String) });
    expect(waiting.data.credits_consumed).toBeGreaterThan(0);
    await feed.saw("usage", ({ approvals_pending }) => approvals_pending === 1);
    await gateway.call("POST", `/v1/tasks/${task}/approvals/${data.call_id}`, {
      body: { decision: "approve" },
    });
    await feed.saw("approval.changed", ({ status }) => status === "approved");
    const done = await feed.saw("task.changed", ({ status }) => status === "succeeded");
    expect(done.data.steps).toBe(2);
    await feed.saw(
      "usage",
      ({ approvals_pending, tasks_running }) => approvals_pending + tasks_running === 0,
    );
    feed.leave();
  });

  test("as denied, and as withdrawn if its task ends first", async () => {
    const { gateway } = stage;
    const feed = await openFeed(gateway);
    asking();
    const first = await ask();
    const { data } = await feed.saw("approval.changed", ({ task }) => task === first);
    await gateway.call("POST", `/v1/tasks/${first}/approvals/${data.call_id}`, {
      body: { decision: "deny" },
    });
    await feed.saw("approval.changed", ({ task, status }) => task === first && status === "denied");
    await ended(gateway, first);
    asking();
    const second = await ask();
    await feed.saw("approval.changed", ({ task }) => task === second);
    await gateway.call("POST", `/v1/tasks/${second}/cancel`);
    await feed.saw("approval.changed", ({ task, status }) => task === second && status === "withdrawn");
    await feed.saw("task.changed", ({ id, status }) => id === second && status === "cancelled");
    feed.leave();
  });

  test("as expired if nobody decides in time", async () => {
    const clock = new FakeClock();
    const own = await startStage({ clock, tiers: { 1: ["a"] }, more: "approvals: { expire_hours: 1 }" });
    await own.gateway.agent("careful", { approvals: ["time.*"] });
    own.upstream.script("a", (_request: unknown, call: number) => (call === 0 ? ASKS : { chunks: ["done"] }));
    const feed = await openFeed(own.gateway);
    const task = await dispatch(own.gateway, { agent: "careful", tools: ["time.now"] });
    const has = (status: string) => {
      clock.advance(100);
      return feed.named("approval.changed").some((data) => data.task === task && data.status === status);
    };
    await until(() => has("pending"));
    clock.setWall(clock.now() + HOUR_MS);
    await until(() => has("expired"));
    await own.stop();
  });
});

test("a failed task is reported with its error's code, but without its message", async () => {
  const feed = await openFeed(stage.gateway);
  stage.upstream.script("a", () => ({ status: 500 }));
  const id = await dispatch(stage.gateway, { agent: "plain" });
  const { data } = await feed.saw("task.changed", ({ status }) => status === "failed");
  expect([data.id, data.error]).toEqual([id, { code: "model_unavailable" }]);
  feed.leave();
});

test("a spent budget is reported to callers who may change settings, and an agent's also to its token", async () => {
  const { gateway } = stage;
  await gateway.agent("other");
  await gateway.agent("poor");
  const scopes = ["settings:write"];
  const admin = await openFeed(gateway);
  const poor = await openFeed(gateway, await gateway.token({ agent: "poor", scopes }));
  const other = await openFeed(gateway, await gateway.token({ agent: "other", scopes }));
  const none = await openFeed(gateway, await gateway.token({ scopes: ["tasks:read"] }));
  await gateway.call("PATCH", "/v1/agents/poor", { body: { budget: { credits_per_day: 0 } } });
  const clients = [admin, poor, other, none];
  await settled(gateway, clients);
  const spent = [80, 100].map((percent) => ({ budget: "agent_day", agent: "poor", percent }));
  expect(clients.map((client) => client.named("budget.spent"))).toEqual([spent, spent, [], []]);
  for (const client of clients) client.leave();
});

test("whatever it reports about a task can already be read", async () => {
  const { gateway } = stage;
  const feed = await openFeed(gateway);
  const ranks = ["queued", "running", "succeeded"];
  const ids = new Set<string>();
  for (let task = 0; task < 40; task++) ids.add(await dispatch(gateway, { agent: "plain", tier: 2 }));
  const seen = new Set<ReadEvent["data"]>();
  const checked = new Set<string>();
  while (checked.size < ids.size) {
    const { data } = await feed.saw("task.changed", (each) => !seen.has(each));
    seen.add(data);
    const { body } = await gateway.call("GET", `/v1/tasks/${data.id}`);
    expect(ranks.indexOf(body.status)).toBeGreaterThanOrEqual(ranks.indexOf(data.status));
    if (data.status === "succeeded") checked.add(data.id);
  }
  expect(checked).toEqual(ids);
  feed.leave();
});

test("1,000 tasks finish while a reader reads nothing; it then finds each in its final state", async () => {
  const { gateway } = stage;
  const feed = await openFeed(gateway);
  const unread = await gateway.gateway.handle(
    new Request("http://gate/v1/events", { headers: { authorization: `Bearer ${gateway.admin}` } }),
  );
  const body = JSON.stringify({ agent: "plain", prompt: "hi", tier: 2 });
  const headers = { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" };
  const ids = await Promise.all(
    Array.from({ length: TASKS }, async () => {
      const request = new Request("http://gate/v1/tasks", { method: "POST", headers, body });
      return ((await (await gateway.gateway.handle(request)).json()) as { id: string }).id;
    }),
  );
  const finished = (events: readonly ReadEvent[]) =>
    new Set(
      events.flatMap(({ event, data }) => (event === "task.changed" && data.finished_at ? data.id : [])),
    );
  const open = new Set(ids);
  await feed.saw("task.changed", ({ id, finished_at }) => {
    if (finished_at !== null) open.delete(id);
    return open.size === 0;
  });
  // Before it read, the connection could buffer only so much; the rest is the last state of each task.
  const events: ReadEvent[] = [];
  for await (const event of readEvents(unread)) {
    events.push(event);
    if (event.event === "feed.reset" || finished(events).size === TASKS) break;
  }
  expect(events.at(-1)?.event).toBe("task.changed");
  expect(events.length).toBeLessThan(3 * TASKS);
  feed.leave();
});

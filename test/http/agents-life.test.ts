import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { FakeClock } from "../support/clock.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";

const clock = new FakeClock();
// Accepts a call and never answers, so a started task runs until it is stopped.
const upstream = startFakeModel({ fallback: { hang: true } });
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({
    clock,
    yaml: `
providers:
  fake: { kind: openai-compatible, base_url: "${upstream.url}", timeout_ms: 60000 }
tiers:
  1: { models: [builtin/extractive] }
  2: { models: [fake/slow] }
limits: { concurrent_tasks: 2, enforcement: enforced }
`,
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

const read = async (name: string) => (await gateway.call("GET", `/v1/agents/${name}`)).body;
const dispatch = (agent: string, tier = 1) =>
  gateway.call("POST", "/v1/tasks", { body: { agent, prompt: "hi", tier } });
const task = async (id: string) => (await gateway.call("GET", `/v1/tasks/${id}`)).body;
const entry = async (seq: string | null) => (await gateway.call("GET", `/v1/ledger/${seq}`)).body;

describe("an unknown agent answers 404 agent_not_found", () => {
  test.each([
    ["GET", "/v1/agents/nobody", null],
    ["PATCH", "/v1/agents/nobody", { owner: "x" }],
    ["DELETE", "/v1/agents/nobody", null],
    ["POST", "/v1/agents/nobody/stop", null],
    ["POST", "/v1/agents/nobody/resume", null],
    ["GET", "/v1/agents/NOBODY", null],
    ["GET", "/v1/agents/%27%20OR%201%3D1--", null],
  ])("%s %s", async (method, path, body) => {
    const answer = await gateway.call(method, path, body ? { body } : {});
    expect([answer.status, answer.body.code]).toEqual([404, "agent_not_found"]);
  });
});

test("a name can be used once: 409 agent_exists, and the first agent is unchanged", async () => {
  await gateway.agent("taken");
  const body = { name: "taken", owner: "another", memory_scope: "/" };
  const answers = await Promise.all([1, 2, 3].map(() => gateway.call("POST", "/v1/agents", { body })));
  for (const answer of answers) expect([answer.status, answer.body.code]).toEqual([409, "agent_exists"]);
  expect(await read("taken")).toMatchObject({ owner: "tests", version: 1 });
});

test("of ten simultaneous creations of one name, one succeeds", async () => {
  const body = { name: "raced", owner: "x", memory_scope: "/" };
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => gateway.call("POST", "/v1/agents", { body })),
  );
  expect(answers.map((answer) => answer.status).sort()).toEqual([201, ...Array(9).fill(409)]);
});

describe("PATCH", () => {
  test("changes only what it names, and the version grows with each change", async () => {
    await gateway.agent("patched", { description: "d", instructions: "i", max_steps: 3, approvals: ["a"] });
    const before = await read("patched");
    clock.advance(1_000);
    const steps: readonly [change: object, expected: object][] = [
      [{ owner: "new" }, { owner: "new" }],
      [{ memory_scope: ["a", "b"] }, { memory_scope: ["a", "b"] }],
      [{ description: null }, { description: null }],
      [
        { instructions: null, max_steps: 9 },
        { instructions: null, max_steps: 9 },
      ],
      [{ approvals: null }, { approvals: null }],
      [{ approvals: [] }, { approvals: [] }],
      [{ budget: { credits_per_day: 1.5 } }, { budget: { credits_per_day: 1.5 } }],
      [{ budget: { credits_per_day: null } }, { budget: { credits_per_day: null } }],
      [{ tools: [] }, { tools: [] }],
    ];
    let expected = before;
    for (const [index, [change, shown]] of steps.entries()) {
      const answer = await gateway.call("PATCH", "/v1/agents/patched", { body: change });
      expected = {
        ...expected,
        ...shown,
        version: 2 + index,
        updated_at: new Date(clock.now()).toISOString(),
      };
      expect(answer.body).toEqual(expected);
    }
    expect(await read("patched")).toEqual(expected);
    expect(expected.created_at).toBe(before.created_at);
  });

  test("cannot change the name, nor anything else in the same call", async () => {
    const answer = await gateway.call("PATCH", "/v1/agents/patched", {
      body: { name: "other", owner: "no" },
    });
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "/name"]);
    expect((await read("patched")).owner).toBe("new");
  });

  test("of a policy applies from the next dispatch on", async () => {
    await gateway.agent("narrowed");
    expect((await dispatch("narrowed", 1)).status).toBe(202);
    await gateway.call("PATCH", "/v1/agents/narrowed", { body: { tier_policy: { tiers: [2] } } });
    const refused = await dispatch("narrowed", 1);
    expect([refused.status, refused.body.code]).toEqual([403, "tier_forbidden"]);
  });

  test("loses no change when many come at once", async () => {
    await gateway.agent("busy");
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        gateway.call("PATCH", "/v1/agents/busy", { body: { max_steps: index + 1 } }),
      ),
    );
    expect((await read("busy")).version).toBe(11);
  });
});

describe("DELETE archives", () => {
  test("204, then 404, gone from the list, its name free again and its history kept", async () => {
    await gateway.agent("leaving");
    const id = await finishedTask(gateway, "leaving");
    const gone = await gateway.call("DELETE", "/v1/agents/leaving");
    expect([gone.status, gone.body]).toEqual([204, null]);
    expect((await gateway.call("GET", "/v1/agents/leaving")).body.code).toBe("agent_not_found");
    expect((await gateway.call("DELETE", "/v1/agents/leaving")).body.code).toBe("agent_not_found");
    expect((await dispatch("leaving")).body.code).toBe("agent_not_found");
    const list = await gateway.call("GET", "/v1/agents?limit=200");
    expect(list.body.data.map((agent: { name: string }) => agent.name)).not.toContain("leaving");

    expect(await task(id)).toMatchObject({ agent: "leaving", status: "succeeded", prompt: "hello" });
    const events = await gateway.call("GET", `/v1/tasks/${id}/events`);
    expect(events.body).toContain("event: task.finished");
    const byAgent = await gateway.call("GET", "/v1/tasks?agent=leaving");
    expect(byAgent.body.data.map((each: { id: string }) => each.id)).toEqual([id]);
    expect((await gateway.call("GET", "/v1/ledger?agent=leaving")).body.data.length).toBeGreaterThan(2);

    await gateway.agent("leaving", { owner: "next" });
    expect(await read("leaving")).toMatchObject({ owner: "next", version: 1 });
  });

  test("its running and waiting tasks end", async () => {
    await gateway.agent("removed");
    const ids: string[] = [];
    for (let index = 0; index < 3; index++) ids.push((await dispatch("removed", 2)).body.id);
    await until(async () => (await task(ids[0] ?? "")).status === "running");
    expect((await gateway.call("DELETE", "/v1/agents/removed")).status).toBe(204);
    for (const id of ids) expect((await task(id)).status).toBe("cancelled");
  });
});

describe("the stop button", () => {
  test("cancels what is queued and running, and refuses new tasks with 409 agent_stopped", async () => {
    await gateway.agent("stopped");
    const ids: string[] = [];
    for (let index = 0; index < 4; index++) ids.push((await dispatch("stopped", 2)).body.id);
    await until(async () => (await task(ids[1] ?? "")).status === "running");
    expect((await task(ids[3] ?? "")).status).toBe("queued");

    const answer = await gateway.call("POST", "/v1/agents/stopped/stop");
    expect(answer.body).toMatchObject({ name: "stopped", status: "stopped", version: 2 });
    for (const id of ids) {
      const ended = await task(id);
      expect([ended.status, ended.error?.code]).toEqual(["cancelled", "agent_stopped"]);
    }
    for (const path of ["/v1/tasks", "/v1/tasks?stream=true"]) {
      const refused = await gateway.call("POST", path, { body: { agent: "stopped", prompt: "x" } });
      expect([refused.status, refused.body.code]).toEqual([409, "agent_stopped"]);
      const denied = await entry(refused.headers.get("gatehouse-ledger"));
      expect(denied).toMatchObject({ action: "task.dispatch", outcome: "denied", code: "agent_stopped" });
    }
  });

  test("leaves other agents alone", async () => {
    await gateway.agent("other");
    expect((await dispatch("other")).status).toBe(202);
  });

  test("resume lets it work again", async () => {
    const answer = await gateway.call("POST", "/v1/agents/stopped/resume", { body: {} });
    expect(answer.body).toMatchObject({ status: "active", version: 3 });
    expect((await dispatch("stopped")).status).toBe(202);
  });

  test("pressed twice stops it once, and each press is recorded", async () => {
    const first = await gateway.call("POST", "/v1/agents/other/stop");
    const second = await gateway.call("POST", "/v1/agents/other/stop");
    expect([first.body.version, second.body.version]).toEqual([2, 2]);
    expect(first.headers.get("gatehouse-ledger")).not.toBe(second.headers.get("gatehouse-ledger"));
  });

  test.each([
    [
      "a token's person and role",
      { person: "Ada Lovelace", role: "DPO" },
      { person: "Ada Lovelace", role: "DPO" },
    ],
    ["its name if it names no person", {}, { person: "button" }],
  ])("is recorded as oversight with %s", async (_, held, shown) => {
    const token = await gateway.token({ name: "button", scopes: ["approvals:write"], ...held });
    for (const decision of ["stop", "resume"]) {
      clock.advance(1_000);
      const answer = await gateway.call("POST", `/v1/agents/other/${decision}`, { token });
      const recorded = await entry(answer.headers.get("gatehouse-ledger"));
      expect(recorded).toMatchObject({
        action: `oversight.${decision}`,
        outcome: "succeeded",
        agent: "other",
      });
      expect(recorded.oversight).toEqual({
        ...shown,
        decision,
        decided_at: new Date(clock.now()).toISOString(),
      });
      expect(recorded.actor).toMatch(/^token:tok_/);
    }
  });

  test("refused, records no decision as made", async () => {
    const token = await gateway.token({ scopes: ["agents:write"] });
    const answer = await gateway.call("POST", "/v1/agents/other/stop", { token });
    const recorded = await entry(answer.headers.get("gatehouse-ledger"));
    expect(recorded).toMatchObject({ outcome: "denied", code: "scope_missing", oversight: null });
    expect((await read("other")).status).toBe("active");
  });
});

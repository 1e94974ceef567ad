import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const GOOD = { name: "report", agent: "helper", prompt: "hello", cron: "0 9 * * MON-FRI" };

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }" });
  await gateway.agent("helper");
  await gateway.agent("other");
});
afterAll(() => gateway.stop());

const post = (body: object, token?: string) =>
  gateway.call("POST", "/v1/schedules", { body, ...(token === undefined ? {} : { token }) });

describe("refused", () => {
  test.each([
    ["no cron", { cron: undefined }, "/cron"],
    ["six fields", { cron: "* * * * * *" }, "/cron"],
    ["a minute of 60", { cron: "60 * * * *" }, "/cron"],
    ["a day that never comes", { cron: "0 0 30 2 *" }, "/cron"],
    ["an unknown time zone", { timezone: "Nope/Zone" }, "/timezone"],
    ["an offset", { timezone: "+02:00" }, "/timezone"],
    ["an empty prompt", { prompt: "" }, "/prompt"],
    ["an unknown value of missed", { missed: "twice" }, "/missed"],
    ["a tool twice", { tools: ["time.now", "time.now"] }, "/tools/1"],
    ["an unknown field", { every: "1h" }, "/every"],
    ["a name with a line break", { name: "a\nb" }, "/name"],
  ])("%s is 422 and names the field", async (_, fields, path) => {
    const { status, body } = await post({ ...GOOD, ...fields });
    expect([status, body.errors?.[0]?.path]).toEqual([422, path]);
  });

  test.each([
    ["an unknown agent", { agent: "nobody" }, 404, "agent_not_found"],
    ["an unknown tier", { tier: 99 }, 422, "unknown_tier"],
    ["an unknown tool", { tools: ["no.tool"] }, 422, "unknown_tool"],
  ])("%s is refused as a task would be", async (_, fields, status, code) => {
    const answer = await post({ ...GOOD, ...fields });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test("one schedule too many is 409", async () => {
    const token = await gateway.workspace("full");
    await gateway.call("POST", "/v1/agents", {
      token,
      body: { name: "helper", owner: "tests", memory_scope: "support" },
    });
    const answers = await Promise.all(Array.from({ length: 101 }, () => post(GOOD, token)));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused.map(({ status, body }) => [status, body.code])).toEqual([[409, "schedule_limit"]]);
  });
});

test("a token that acts as an agent can access only that agent's schedules", async () => {
  const { body: others } = await post({ ...GOOD, agent: "other" });
  const token = await gateway.token({ agent: "helper" });
  expect((await post({ ...GOOD, agent: "other" }, token)).body.code).toBe("agent_forbidden");
  const { body: own } = await post(GOOD, token);
  const listed = await gateway.call("GET", "/v1/schedules", { token });
  expect(listed.body.data.map(({ agent }: { agent: string }) => agent)).not.toContain("other");
  for (const method of ["GET", "PATCH", "DELETE"]) {
    const body = method === "PATCH" ? { body: { name: "mine" } } : {};
    expect((await gateway.call(method, `/v1/schedules/${others.id}`, { token, ...body })).status).toBe(404);
  }
  const moved = await gateway.call("PATCH", `/v1/schedules/${own.id}`, { token, body: { agent: "other" } });
  expect(moved.body.code).toBe("agent_forbidden");
});

test("another workspace's schedule is not found", async () => {
  const { body } = await post(GOOD);
  const token = await gateway.workspace("elsewhere");
  expect((await gateway.call("GET", `/v1/schedules/${body.id}`, { token })).status).toBe(404);
  expect((await gateway.call("GET", "/v1/schedules", { token })).body.data).toEqual([]);
  expect((await gateway.call("DELETE", `/v1/schedules/${body.id}`, { token })).status).toBe(404);
});

test("created, read, changed, listed and deleted, each recorded", async () => {
  const made = await post({ ...GOOD, tier: 1, timezone: "Europe/Berlin", missed: "once" });
  expect(made.status).toBe(201);
  const { id } = made.body;
  expect(made.headers.get("location")).toBe(`/v1/schedules/${id}`);
  expect(made.body).toMatchObject({
    ...GOOD,
    tier: 1,
    timezone: "Europe/Berlin",
    missed: "once",
    status: "active",
    tools: [],
    metadata: {},
    version: 1,
    last_run: null,
  });
  expect(Date.parse(made.body.next_run_at)).toBeGreaterThan(Date.now());
  expect((await gateway.call("GET", `/v1/schedules/${id}`)).body).toEqual(made.body);
  const changed = await gateway.call("PATCH", `/v1/schedules/${id}`, {
    body: { tier: null, status: "paused", prompt: "a secret plan" },
  });
  expect(changed.body).toMatchObject({ tier: null, status: "paused", next_run_at: null, version: 2 });
  const first = await gateway.call("GET", "/v1/schedules?limit=1");
  expect(first.body.data[0].id).toBe(id);
  const rest = await gateway.call("GET", `/v1/schedules?cursor=${first.body.next_cursor}`);
  expect(rest.body.data.map((each: { id: string }) => each.id)).not.toContain(id);
  expect((await gateway.call("DELETE", `/v1/schedules/${id}`)).status).toBe(204);
  expect((await gateway.call("GET", `/v1/schedules/${id}`)).status).toBe(404);
  const ledger = await gateway.call("GET", "/v1/ledger?agent=helper&order=desc&limit=200");
  const actions = ledger.body.data
    .filter((entry: { detail?: { schedule?: string } }) => entry.detail?.schedule === id)
    .map(({ action }: { action: string }) => action);
  expect(actions).toEqual(["schedule.delete", "schedule.update", "schedule.read", "schedule.create"]);
  expect(JSON.stringify(ledger.body)).not.toContain("a secret plan");
});

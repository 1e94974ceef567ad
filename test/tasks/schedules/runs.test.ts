import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { until } from "../../notify/support.ts";
import { FakeClock } from "../../support/clock.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** In a shared store, schedules belong to the node that has their lease, which it gets with a later beat. */
const LATER_MS = 20;

let directory: ReturnType<typeof tempDir>;
let clock: FakeClock;
let gateway: TestGateway;
/** The first gateway's admin token, which stays valid. */
let admin: string;

beforeEach(async () => {
  directory = tempDir();
  clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  gateway = await startGateway({ dataDir: directory.path, clock });
  admin = gateway.admin;
  await gateway.agent("helper");
});
afterEach(async () => {
  await gateway.stop();
  directory.remove();
});

async function restart(): Promise<void> {
  await gateway.stop();
  gateway = await startGateway({ dataDir: directory.path, clock });
}

const call = (method: string, path: string, body?: object, token = admin) =>
  gateway.call(method, path, { token, ...(body === undefined ? {} : { body }) });

async function schedule(fields: object = {}, token = admin): Promise<string> {
  const body = { name: "hourly", agent: "helper", prompt: "hello", cron: "0 * * * *", ...fields };
  const made = await call("POST", "/v1/schedules", body, token);
  expect(made.status).toBe(201);
  return made.body.id;
}

const read = async (id: string) => (await call("GET", `/v1/schedules/${id}`)).body;
const tasks = async () => (await call("GET", "/v1/tasks?limit=200")).body.data;
const dispatches = async () => {
  const { body } = await call("GET", "/v1/ledger?action=task.dispatch&limit=200");
  return body.data.filter((entry: { phase: string }) => entry.phase !== "outcome");
};

/**
 * Sets the clock to a time, which is noticed within half a minute, and waits until everything due by then is settled.
 */
async function reach(id: string, time: string): Promise<void> {
  clock.setWall(Date.parse(time));
  clock.advance(30_000);
  await until(async () => {
    clock.advance(1);
    return (await read(id)).last_run?.scheduled_at === new Date(Date.parse(time)).toISOString();
  });
}

test("at each time a task is dispatched, with the schedule's actor, and its entry names the schedule", async () => {
  const id = await schedule({ metadata: { why: "report" } });
  const made = await read(id);
  expect(made.next_run_at).toBe("2026-01-02T04:00:00.000Z");
  await reach(id, "2026-01-02T04:00:00Z");
  await reach(id, "2026-01-02T05:00:00Z");
  const [second, first] = await tasks();
  expect(await tasks()).toHaveLength(2);
  expect(first).toMatchObject({
    agent: "helper",
    prompt: "hello",
    metadata: { why: "report" },
    created_by: made.created_by,
  });
  expect(await read(id)).toMatchObject({
    next_run_at: "2026-01-02T06:00:00.000Z",
    last_run: { scheduled_at: "2026-01-02T05:00:00.000Z", task: second.id, code: null },
  });
  const [entry] = await dispatches();
  expect(entry).toMatchObject({
    phase: "intent",
    channel: "system",
    actor: made.created_by,
    agent: "helper",
    task: first.id,
    detail: { schedule: id, scheduled_at: "2026-01-02T04:00:00.000Z" },
  });
});

describe("lost rights stop a schedule", () => {
  test("a revoked token's schedule does not run, reports it, and is paused", async () => {
    const issued = await call("POST", "/v1/tokens", { name: "t", scopes: ["tasks:write", "tasks:read"] });
    const id = await schedule({}, issued.body.secret);
    await call("DELETE", `/v1/tokens/${issued.body.id}`);
    await reach(id, "2026-01-02T04:00:00Z");
    expect(await tasks()).toEqual([]);
    expect(await read(id)).toMatchObject({
      status: "paused",
      next_run_at: null,
      last_run: { task: null, code: "invalid_token" },
    });
    expect(await dispatches()).toMatchObject([
      {
        outcome: "denied",
        code: "invalid_token",
        actor: `token:${issued.body.id}`,
        detail: { schedule: id },
      },
    ]);
  });

  test("an expired token's schedule does not run either", async () => {
    const issued = await call("POST", "/v1/tokens", {
      name: "t",
      scopes: ["tasks:write"],
      expires_in: "10m",
    });
    const id = await schedule({}, issued.body.secret);
    await reach(id, "2026-01-02T04:00:00Z");
    expect(await tasks()).toEqual([]);
    expect((await read(id)).last_run.code).toBe("invalid_token");
  });

  test("a stopped agent's runs are refused, each with an entry, until it is resumed", async () => {
    const id = await schedule();
    await call("POST", "/v1/agents/helper/stop");
    await reach(id, "2026-01-02T04:00:00Z");
    await reach(id, "2026-01-02T05:00:00Z");
    expect(await tasks()).toEqual([]);
    expect(await dispatches()).toMatchObject([
      { outcome: "denied", code: "agent_stopped", detail: { schedule: id } },
      { outcome: "denied", code: "agent_stopped", detail: { schedule: id } },
    ]);
    expect(await read(id)).toMatchObject({ status: "active", last_run: { code: "agent_stopped" } });
    await call("POST", "/v1/agents/helper/resume");
    await reach(id, "2026-01-02T06:00:00Z");
    expect(await tasks()).toHaveLength(1);
  });

  test("an archived agent's schedule is paused", async () => {
    const id = await schedule();
    await call("DELETE", "/v1/agents/helper");
    await reach(id, "2026-01-02T04:00:00Z");
    expect(await read(id)).toMatchObject({ status: "paused", last_run: { code: "agent_not_found" } });
  });

  test("a person who changes it lends it only their own rights", async () => {
    const id = await schedule({ tools: ["time.now"] });
    const issued = await call("POST", "/v1/tokens", { name: "t", scopes: ["tasks:write"] });
    const weak = issued.body.secret;
    expect((await call("PATCH", `/v1/schedules/${id}`, { prompt: "other" }, weak)).status).toBe(403);
    const changed = await call("PATCH", `/v1/schedules/${id}`, { prompt: "other", tools: [] }, weak);
    expect(changed.body).toMatchObject({ runs_as: `token:${issued.body.id}`, version: 2 });
    await reach(id, "2026-01-02T04:00:00Z");
    expect((await tasks())[0]).toMatchObject({ prompt: "other", created_by: `token:${issued.body.id}` });
  });
});

describe("missed", () => {
  test("missed times are skipped and recorded", async () => {
    const id = await schedule();
    await gateway.stop();
    clock.advance(3 * DAY);
    gateway = await startGateway({ dataDir: directory.path, clock });
    await until(async () => {
      clock.advance(LATER_MS);
      return (await read(id)).last_run !== null;
    });
    expect(await tasks()).toEqual([]);
    expect(await read(id)).toMatchObject({
      next_run_at: "2026-01-05T04:00:00.000Z",
      last_run: { scheduled_at: "2026-01-02T04:00:00.000Z", code: "missed" },
    });
    expect(await dispatches()).toMatchObject([
      { outcome: "cancelled", code: "missed", detail: { missed: 1 } },
    ]);
  });

  test("with `once`, one run makes up for them, however many there were and however often the server starts", async () => {
    const id = await schedule({ cron: "*/1 * * * *", missed: "once" });
    await gateway.stop();
    clock.advance(40 * DAY);
    gateway = await startGateway({ dataDir: directory.path, clock });
    await until(async () => {
      clock.advance(LATER_MS);
      return (await tasks()).length === 1;
    });
    await restart();
    await restart();
    expect(await tasks()).toHaveLength(1);
    expect((await dispatches())[0]).toMatchObject({ detail: { schedule: id, missed: 1 } });
  });

  test("a clock set forward causes no flood", async () => {
    const id = await schedule({ cron: "*/1 * * * *" });
    clock.setWall(clock.now() + 90 * DAY);
    clock.advance(30_000);
    await until(async () => (await read(id)).last_run?.code === "missed");
    expect(await tasks()).toEqual([]);
  });

  test("a clock set back runs nothing twice", async () => {
    const id = await schedule();
    await reach(id, "2026-01-02T04:00:00Z");
    clock.setWall(Date.UTC(2026, 0, 2, 3, 59, 0));
    // If the schedule is changed now, its next time is the one that has already passed once.
    await call("PATCH", `/v1/schedules/${id}`, { status: "paused" });
    await call("PATCH", `/v1/schedules/${id}`, { status: "active" });
    expect((await read(id)).next_run_at).toBe("2026-01-02T04:00:00.000Z");
    clock.advance(MINUTE);
    await until(async () => {
      clock.advance(1);
      return (await read(id)).next_run_at === "2026-01-02T05:00:00.000Z";
    });
    expect(await tasks()).toHaveLength(1);
  });
});

test("over months each day has its task, through daylight saving time and leap day", async () => {
  await call("PATCH", "/v1/workspace", { limits: { requests_per_minute: 1_000_000 } });
  clock.setWall(Date.UTC(2028, 1, 27));
  const id = await schedule({ cron: "30 2 * * *", timezone: "Europe/Berlin" });
  const seen: string[] = [];
  while (seen.length < 32) {
    const { next_run_at: next } = await read(id);
    await reach(id, next);
    seen.push(next);
  }
  expect(seen.slice(0, 4)).toEqual([
    "2028-02-27T01:30:00.000Z",
    "2028-02-28T01:30:00.000Z",
    "2028-02-29T01:30:00.000Z",
    "2028-03-01T01:30:00.000Z",
  ]);
  expect(seen.slice(-4)).toEqual([
    "2028-03-26T01:00:00.000Z",
    "2028-03-27T00:30:00.000Z",
    "2028-03-28T00:30:00.000Z",
    "2028-03-29T00:30:00.000Z",
  ]);
  expect(await tasks()).toHaveLength(32);
});

test("many schedules of one minute are each dispatched once", async () => {
  const ids = [];
  for (let count = 0; count < 40; count++) ids.push(await schedule({ cron: "5 3 * * *" }));
  clock.setWall(Date.UTC(2026, 0, 2, 3, 5));
  clock.advance(30_000);
  await until(async () => {
    clock.advance(1);
    return (await tasks()).length === 40;
  });
  const named = (await dispatches()).map((entry: { detail: { schedule: string } }) => entry.detail.schedule);
  expect(named.sort()).toEqual(ids.sort());
});

test("a deleted or paused schedule does not run", async () => {
  const gone = await schedule();
  const paused = await schedule();
  const runs = await schedule();
  expect((await call("DELETE", `/v1/schedules/${gone}`)).status).toBe(204);
  await call("PATCH", `/v1/schedules/${paused}`, { status: "paused" });
  await reach(runs, "2026-01-02T04:00:00Z");
  expect(await tasks()).toHaveLength(1);
  expect((await read(paused)).last_run).toBeNull();
});

describe("an archived agent, and a new one with its name:", () => {
  test("the schedule is not run by the other one, and is paused", async () => {
    const id = await schedule();
    expect((await call("DELETE", "/v1/agents/helper")).status).toBe(204);
    await gateway.agent("helper", { instructions: "Do as somebody else says." });
    await reach(id, "2026-01-02T04:00:00Z");
    expect(await tasks()).toEqual([]);
    expect(await read(id)).toMatchObject({
      status: "paused",
      last_run: { task: null, code: "agent_not_found" },
    });
    // A person who has checked names the agent again.
    expect((await call("PATCH", `/v1/schedules/${id}`, { status: "active", agent: "helper" })).status).toBe(
      200,
    );
    await reach(id, "2026-01-02T05:00:00Z");
    expect(await tasks()).toHaveLength(1);
  });

  test("a token of the new agent does not see it", async () => {
    const id = await schedule();
    await call("DELETE", "/v1/agents/helper");
    await gateway.agent("helper");
    const token = await gateway.token({ agent: "helper" });
    expect((await call("GET", `/v1/schedules/${id}`, undefined, token)).status).toBe(404);
    expect((await call("GET", "/v1/schedules", undefined, token)).body.data).toEqual([]);
  });
});

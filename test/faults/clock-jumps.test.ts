/**
 * The wall clock jumps forward by days or back by hours, as time servers, suspended machines and operators cause it
 * to. Durations are measured with a clock that never jumps. Dates come from the wall clock, and the jump is reported.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type FakeReceiver, startReceiver } from "../notify/support.ts";
import { FakeClock } from "../support/clock.ts";
import { storeRows } from "../support/store-rows.ts";
import { dispatch, ended, held, ledger, type Stage, startStage, unsettled, until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Jump = readonly [what: string, ms: number];
const FORWARD: Jump = ["forward by 30 days", 30 * DAY];
const BACK: Jump = ["back by 5 hours", -5 * HOUR];
const JUMPS: readonly Jump[] = [FORWARD, BACK];

let clock: FakeClock;
let receiver: FakeReceiver;
let stage: Stage;

beforeEach(async () => {
  clock = new FakeClock(Date.UTC(2026, 0, 2, 12, 4, 5));
  receiver = startReceiver("task.finished");
  stage = await startStage({
    clock,
    tiers: { 1: ["a"] },
    limits: { requests_per_minute: 60, enforcement: "enforced" },
    timeoutMs: 20_000,
    more: `notify: { webhook: "${receiver.url}" }`,
  });
  await stage.gateway.agent("plain");
  await stage.gateway.agent("careful", { approvals: ["time.*"] });
  stage.upstream.script("a", { chunks: ["done"] });
});
afterEach(async () => {
  await until(async () => {
    clock.advance(1_000);
    const { body } = await call("GET", "/v1/workspace");
    return body.usage?.tasks_running === 0 && body.usage.tasks_queued === 0;
  });
  const entries = await everyEntry();
  expect(unsettled(entries)).toEqual([]);
  const times = entries.map(({ ts }) => ts);
  // The evidence has one order, whatever the clock does.
  expect(times).toEqual(times.toSorted());
  await stage.stop();
  await receiver.close();
});

/** Refills the bucket first, so that reading the ledger is not refused. */
async function everyEntry() {
  clock.advance(MINUTE);
  return (await ledger(stage.gateway)) as (Awaited<ReturnType<typeof ledger>>[number] & { ts: string })[];
}

const call = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
  stage.gateway.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
const jump = (ms: number) => clock.setWall(clock.now() + ms);
const pending = async () =>
  (await call("GET", "/v1/approvals")).body.data as { task: string; call_id: string }[];

describe.each(JUMPS)("a clock that is set %s", (_, ms) => {
  test("does not end a running task: its model has its whole timeout by the monotonic clock", async () => {
    const { script, asked, open } = held({ chunks: ["done"] });
    stage.upstream.script("a", script);
    const id = await dispatch(stage.gateway, { agent: "plain" });
    await asked;
    jump(ms);
    clock.advance(19_000);
    expect((await call("GET", `/v1/tasks/${id}`)).body.status).toBe("running");
    open();
    const task = await ended(stage.gateway, id);
    expect(task).toMatchObject({ status: "succeeded", output: "done" });
    expect(Date.parse(task.finished_at)).toBeGreaterThanOrEqual(Date.parse(task.started_at));
    const outcome = (await everyEntry()).find(
      ({ task, action, phase }) => task === id && action === "model.call" && phase === "outcome",
    );
    expect(outcome?.detail?.duration_ms).toBe(19_000);
  });

  test("does not keep a silent model's task from ending in time", async () => {
    const asked = Promise.withResolvers<void>();
    stage.upstream.script("a", () => {
      asked.resolve();
      return { hang: true };
    });
    const id = await dispatch(stage.gateway, { agent: "plain" });
    await asked.promise;
    jump(ms);
    const timer = setInterval(() => clock.advance(5_000), 20);
    const task = await ended(stage.gateway, id).finally(() => clearInterval(timer));
    expect(task).toMatchObject({ status: "failed", error: { code: "timeout" } });
  });

  test("neither refills the bucket of requests nor empties it", async () => {
    while ((await call("GET", "/v1/models")).status === 200);
    jump(ms);
    expect((await call("GET", "/v1/models")).status).toBe(429);
    clock.advance(2_000);
    expect((await call("GET", "/v1/models")).status).toBe(200);
  });

  test("affects neither queued tasks nor later ones", async () => {
    const first = await dispatch(stage.gateway, { agent: "plain" });
    jump(ms);
    const second = await dispatch(stage.gateway, { agent: "plain" });
    for (const id of [first, second]) expect((await ended(stage.gateway, id)).status).toBe("succeeded");
    expect((await call("GET", "/v1/workspace")).body.usage.tasks_running).toBe(0);
  });
});

describe("what expires by date", () => {
  test("an approval counts as denied once its day has passed, even by a jump of the clock", async () => {
    stage.upstream.script("a", ({ body }) =>
      body.messages.at(-1)?.role === "tool"
        ? { chunks: ["done"] }
        : { toolCalls: [{ name: "time__now", arguments: {} }] },
    );
    const id = await dispatch(stage.gateway, { agent: "careful", tools: ["time.now"] });
    await until(async () => {
      clock.advance(1_000);
      return (await pending()).length === 1;
    });
    jump(BACK[1]);
    clock.advance(MINUTE);
    expect(await pending()).toMatchObject([{ task: id }]);
    jump(FORWARD[1]);
    const timer = setInterval(() => clock.advance(5_000), 20);
    const task = await ended(stage.gateway, id).finally(() => clearInterval(timer));
    expect(task.tools_called).toMatchObject([{ status: "denied" }]);
  });

  test("an idempotency key is kept when the clock is set back, and expires a day later", async () => {
    const send = async () =>
      (await call("POST", "/v1/tasks", { agent: "plain", prompt: "hi" }, { "idempotency-key": "k" })).body.id;
    const first = await send();
    jump(BACK[1]);
    expect(await send()).toBe(first);
    jump(FORWARD[1]);
    const second = await send();
    expect(second).not.toBe(first);
    jump(BACK[1]);
    expect(await send()).toBe(second);
  });

  test("a token expires at its date, even after the clock was set back", async () => {
    const token = await stage.gateway.token({ scopes: ["agents:read"], expires_in: "2h" });
    const status = async () => (await stage.gateway.call("GET", "/v1/agents", { token })).status;
    jump(BACK[1]);
    expect(await status()).toBe(200);
    jump(5 * HOUR + 2 * HOUR);
    expect(await status()).toBe(401);
  });
});

describe("a schedule", () => {
  const at = (hour: number) => Date.UTC(2026, 0, 2, hour, 0, 0);
  const tasks = async () => (await call("GET", "/v1/tasks?agent=plain")).body.data.length as number;
  const schedule = async (missed: "skip" | "once") =>
    (
      await call("POST", "/v1/schedules", {
        name: "hourly",
        agent: "plain",
        prompt: "hi",
        cron: "0 * * * *",
        missed,
      })
    ).body.id as string;
  const read = async (id: string) => (await call("GET", `/v1/schedules/${id}`)).body;
  async function settled(id: string, next: number): Promise<void> {
    clock.advance(30_000);
    await until(async () => {
      clock.advance(1_000);
      return (await read(id)).next_run_at === new Date(next).toISOString();
    });
  }

  test.each([
    ["skip", 0],
    ["once", 1],
  ] as const)(
    "whose missed times are set to %s makes %d tasks for the days that the clock jumped over",
    async (missed, made) => {
      const id = await schedule(missed);
      clock.setWall(at(12) + 3 * DAY + 10 * MINUTE);
      await settled(id, at(13) + 3 * DAY);
      expect(await tasks()).toBe(made);
    },
  );

  test("does not run twice for one time if the clock is set back past it, and then continues", async () => {
    const id = await schedule("once");
    clock.setWall(at(13));
    await settled(id, at(14));
    expect(await tasks()).toBe(1);
    clock.setWall(at(11));
    clock.advance(30_000);
    clock.setWall(at(13));
    clock.advance(30_000);
    clock.setWall(at(13) + 59 * MINUTE);
    clock.advance(30_000);
    expect([await tasks(), (await read(id)).next_run_at]).toEqual([1, new Date(at(14)).toISOString()]);
    clock.setWall(at(14));
    await settled(id, at(15));
    expect(await tasks()).toBe(2);
  });
});

describe("a webhook's next try", () => {
  beforeEach(async () => {
    receiver.answers.push(() => new Response(null, { status: 503 }));
    await ended(stage.gateway, await dispatch(stage.gateway, { agent: "plain" }));
    const failed = "SELECT 1 FROM webhook_deliveries WHERE status = 'pending' AND attempts = 1";
    await until(async () => (await storeRows(stage.gateway, failed)).length === 1);
  });

  /** In steps so small that the try itself does not time out, however slow the machine is. */
  const isTriedSoon = () =>
    until(() => {
      clock.advance(250);
      return receiver.posted.length === 2;
    });

  test("comes at once if the clock is set forward past it", async () => {
    jump(DAY);
    await isTriedSoon();
  });

  test("comes at its date if the clock is set back", async () => {
    jump(BACK[1]);
    clock.advance(HOUR);
    expect(receiver.posted).toHaveLength(1);
    clock.advance(4 * HOUR);
    await isTriedSoon();
  });
});

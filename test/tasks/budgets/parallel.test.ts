/** Many simultaneous calls on one budget: what is spent, who waits, and who stops waiting. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { FakeClock } from "../../support/clock.ts";
import { dispatch, ended, gate, ledger, run, type Stage, startStage, unsettled, until } from "../support.ts";
import { notices, oneByOne, reservations, spent, worth } from "./support.ts";

setDefaultTimeout(60_000);

const MINUTE = 60_000;
const LOOK = 1_000;
const CREDIT = 1_000_000;

let clock: FakeClock;
let stage: Stage;
beforeEach(async () => {
  // The last minute of a day.
  clock = new FakeClock(Date.UTC(2026, 0, 15, 23, 59));
  stage = await startStage({
    clock,
    tiers: { 1: ["paid"], 2: ["free"] },
    // One credit per thousand output tokens. The first answer is expected to have a thousand.
    prices: { paid: [0, 1] },
    timeoutMs: 60 * MINUTE,
  });
});
afterEach(() => stage.stop());

const many = (count: number, agent: string) =>
  Promise.all(Array.from({ length: count }, () => dispatch(stage.gateway, { agent })));
const endsOf = (ids: readonly string[]) => Promise.all(ids.map((id) => ended(stage.gateway, id)));
const codes = (tasks: readonly { status: string; error: { code: string } | null }[]) =>
  Object.entries(Object.groupBy(tasks, ({ status, error }) => error?.code ?? status))
    .map(([code, of]) => `${of?.length} ${code}`)
    .sort();
const statusOf = async (id: string) => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body.status;

const BUDGETS = [
  [
    "an agent's day",
    (credits: number) => stage.gateway.agent("busy", { budget: { credits_per_day: credits } }),
  ],
  [
    "a workspace's month",
    async (credits: number) => {
      await stage.gateway.agent("busy");
      await stage.gateway.call("PATCH", "/v1/workspace", {
        body: { budget: { credits_per_month: credits } },
      });
    },
  ],
] as const;

describe.each(BUDGETS)("of %s", (_name, budget) => {
  test("no call is sent if reservations leave nothing, and a spent budget refuses calls", async () => {
    await budget(5);
    const model = oneByOne(stage, "paid", worth(1_000));
    const ids = await many(50, "busy");
    await until(() => model.out() === 5);
    expect(await reservations(stage.gateway)).toBe(5);
    for (let end = 0; end < 5; end++) model.next();
    expect(codes(await endsOf(ids))).toEqual(["45 credits_exhausted", "5 succeeded"]);
    expect(model.asked()).toBe(5);
    expect(await spent(stage.gateway)).toBe(5 * CREDIT);
    expect(await reservations(stage.gateway)).toBe(0);
    const again = await stage.gateway.call("POST", "/v1/tasks", { body: { agent: "busy", prompt: "hi" } });
    expect([again.status, again.body.code]).toEqual([402, "credits_exhausted"]);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  });

  test("no call fails before the budget is spent if calls cost less than reserved", async () => {
    await budget(10);
    stage.upstream.script("paid", worth(500));
    expect(codes(await endsOf(await many(50, "busy")))).toEqual(["20 succeeded", "30 credits_exhausted"]);
    expect(await spent(stage.gateway)).toBe(10 * CREDIT);
    expect(await reservations(stage.gateway)).toBe(0);
  });

  test("if calls cost more than reserved, the budget is overspent by at most their excess, and later calls reserve as much", async () => {
    await budget(10);
    const model = oneByOne(stage, "paid", worth(3_000));
    const ids = await many(50, "busy");
    await until(() => model.out() === 10);
    // 3 spent and 9 reserved: a call that ends does not admit another.
    model.next();
    const first = await Promise.race(ids.map((id) => ended(stage.gateway, id)));
    expect(first.status).toBe("succeeded");
    for (let end = 0; end < 9; end++) model.next();
    const tasks = await endsOf(ids);
    expect(codes(tasks)).toEqual(["10 succeeded", "40 credits_exhausted"]);
    // Ten calls were in flight, each of which cost two credits more than it had reserved.
    expect(await spent(stage.gateway)).toBe(30 * CREDIT);
    await stage.gateway.call("PATCH", "/v1/agents/busy", { body: { budget: { credits_per_day: 36 } } });
    await stage.gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: 36 } } });
    const more = await many(10, "busy");
    await until(() => model.out() === 2);
    for (let end = 0; end < 2; end++) model.next();
    expect(codes(await endsOf(more))).toEqual(["2 succeeded", "8 credits_exhausted"]);
    expect(await spent(stage.gateway)).toBe(36 * CREDIT);
    expect(await reservations(stage.gateway)).toBe(0);
  });

  test("80 and 100 per cent are reported once each, however many calls end together", async () => {
    await budget(10);
    // No call ends before all tasks are accepted: a spent budget accepts none.
    const held = gate();
    stage.upstream.script("paid", () => ({ ...worth(1_000), gate: held.opened }));
    const ids = await many(30, "busy");
    held.open();
    await endsOf(ids);
    const told = await notices(stage.gateway);
    const name = _name === "an agent's day" ? "agent_day" : "workspace_month";
    expect(told).toEqual([
      ["budget.warn", name, 8 * CREDIT],
      ["limit.exceeded", name, 10 * CREDIT],
    ]);
  });
});

describe("a call that waits for its budget", () => {
  let model: ReturnType<typeof oneByOne>;
  /** Starts one call that has reserved everything left, and `count` others that wait. */
  async function waiting(count: number, credits = 1): Promise<{ out: string; ids: string[] }> {
    await stage.gateway.agent("busy", { budget: { credits_per_day: credits } });
    model = oneByOne(stage, "paid", worth(1_000));
    const out = await dispatch(stage.gateway, { agent: "busy" });
    await until(() => model.out() === 1);
    const ids: string[] = [];
    for (let task = 0; task < count; task++) {
      ids.push(await dispatch(stage.gateway, { agent: "busy" }));
      await turns();
    }
    expect(model.asked()).toBe(1);
    return { out, ids };
  }
  /** Waits until any call with room would have proceeded, because each of these requests passes through the store. */
  const turns = async () => {
    for (let turn = 0; turn < 20; turn++) await stage.gateway.call("GET", "/v1/agents");
  };

  test("is cancelled at once, costs nothing, and releases its place to the next call", async () => {
    const { out, ids } = await waiting(3);
    const [first = "", second = "", third = ""] = ids;
    const answer = await stage.gateway.call("POST", `/v1/tasks/${first}/cancel`);
    expect([answer.status, answer.body.status, answer.body.credits_consumed]).toEqual([200, "cancelled", 0]);
    await stage.gateway.call("PATCH", "/v1/agents/busy", { body: { budget: { credits_per_day: 2 } } });
    clock.advance(LOOK);
    await until(() => model.asked() === 2);
    model.next();
    expect((await ended(stage.gateway, out)).status).toBe("succeeded");
    model.next();
    expect((await ended(stage.gateway, second)).status).toBe("succeeded");
    expect((await ended(stage.gateway, third)).error.code).toBe("credits_exhausted");
    expect(await spent(stage.gateway)).toBe(2 * CREDIT);
    expect(await reservations(stage.gateway)).toBe(0);
  });

  test("ends with a stop of its agent", async () => {
    const { out, ids } = await waiting(2);
    expect((await stage.gateway.call("POST", "/v1/agents/busy/stop")).status).toBe(200);
    for (const id of [out, ...ids]) {
      expect(await ended(stage.gateway, id)).toMatchObject({
        status: "cancelled",
        error: { code: "agent_stopped" },
      });
    }
    expect(model.asked()).toBe(1);
    expect(await reservations(stage.gateway)).toBe(0);
    await spent(stage.gateway);
  });

  test("begins if a reservation is returned unused: the call in flight failed or was cancelled", async () => {
    const { out, ids } = await waiting(1);
    await stage.gateway.call("POST", `/v1/tasks/${out}/cancel`);
    await until(() => model.asked() === 2);
    model.next();
    model.next();
    expect((await ended(stage.gateway, ids[0] ?? "")).status).toBe("succeeded");
    expect(await reservations(stage.gateway)).toBe(0);
    await spent(stage.gateway);
  });

  test("begins on a new day, although calls in flight count against that day", async () => {
    await stage.gateway.agent("daily", { budget: { credits_per_day: 1.5 } });
    stage.upstream.script("paid", worth(1_000));
    await run(stage.gateway, { agent: "daily" });
    const held = oneByOne(stage, "paid", worth(1_000));
    const first = await dispatch(stage.gateway, { agent: "daily" });
    await until(() => held.out() === 1);
    const ids = [
      await dispatch(stage.gateway, { agent: "daily" }),
      await dispatch(stage.gateway, { agent: "daily" }),
    ];
    await turns();
    expect(held.asked()).toBe(1);
    clock.advance(MINUTE);
    // One of the new day's 1.5 credits is reserved, so there is room for a second call but not for a third.
    await until(() => held.asked() === 2);
    await turns();
    expect(held.asked()).toBe(2);
    held.next();
    held.next();
    expect((await ended(stage.gateway, first)).status).toBe("succeeded");
    expect(codes(await endsOf(ids))).toEqual(["1 credits_exhausted", "1 succeeded"]);
    await spent(stage.gateway);
  });

  test("delays neither a free call nor another agent's call", async () => {
    const { ids } = await waiting(1);
    await stage.gateway.agent("other", { budget: { credits_per_day: 1 } });
    expect((await run(stage.gateway, { agent: "busy", tier: 2 })).status).toBe("succeeded");
    const other = await dispatch(stage.gateway, { agent: "other" });
    await until(() => model.out() === 2);
    model.next();
    model.next();
    expect((await ended(stage.gateway, other)).status).toBe("succeeded");
    expect((await ended(stage.gateway, ids[0] ?? "")).error.code).toBe("credits_exhausted");
  });

  test("stays queued in the store, and does not prevent the gateway from stopping", async () => {
    const { ids } = await waiting(2);
    expect(await statusOf(ids[0] ?? "")).toBe("queued");
  });
});

test("nothing stays reserved or is counted twice, whichever tasks are cancelled and when", async () => {
  const { gateway, upstream } = stage;
  await gateway.agent("busy", { budget: { credits_per_day: 30 } });
  let call = 0;
  upstream.script("paid", () => {
    call += 1;
    if (call % 7 === 0) return { status: 500 };
    if (call % 5 === 0) return { ...worth(700), cutAfter: 1 };
    return { ...worth(400 + (call % 3) * 300), chunks: ["a", "b", "c"], delayMs: call % 4 };
  });
  const ids = await many(80, "busy");
  const cancels = ids.map(async (id, index) => {
    if (index % 3 !== 0) return;
    await Bun.sleep(index % 11);
    await gateway.call("POST", `/v1/tasks/${id}/cancel`);
  });
  await Promise.all(cancels);
  const tasks = await endsOf(ids);
  expect(new Set(tasks.map(({ status }) => status))).toEqual(new Set(["succeeded", "failed", "cancelled"]));
  expect(await reservations(gateway)).toBe(0);
  expect(await spent(gateway)).toBeGreaterThan(0);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

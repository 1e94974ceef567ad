/** Budgets count once, however many nodes make the calls. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { worth } from "../tasks/budgets/support.ts";
import { gate, ledger, unsettled, yamlOf } from "../tasks/support.ts";

setDefaultTimeout(60_000);

const CREDIT = 1_000_000;

describe.skipIf(missingPostgres !== undefined)("a budget of two nodes", () => {
  let model: FakeModel;
  let started: TestNodes;
  let first: TestGateway;
  let second: TestGateway;
  beforeEach(async () => {
    model = startFakeModel();
    // One credit per thousand output tokens. The first answer is expected to have a thousand.
    const yaml = yamlOf(model.url, { tiers: { 1: ["paid"] }, prices: { paid: [0, 1] } });
    started = await startNodes(2, { yaml });
    const [one, other] = started.nodes;
    if (!one || !other) throw new Error("two nodes were started");
    [first, second] = [one, other];
  });
  afterEach(async () => {
    await started.stop();
    await model.close();
  });

  /** @returns the statuses of `count` calls at once, in turn over the nodes */
  async function many(count: number): Promise<Record<number, number>> {
    const messages = [{ role: "user", content: "hi" }];
    const body = { model: "up/paid", messages, max_tokens: 1_000 };
    const calls = Array.from({ length: count }, (_, index) =>
      (index % 2 === 0 ? first : second).call("POST", "/v1/chat/completions", { body }),
    );
    const statuses: Record<number, number> = {};
    for (const { status } of await Promise.all(calls)) statuses[status] = (statuses[status] ?? 0) + 1;
    return statuses;
  }

  async function setMonth(credits: number): Promise<void> {
    const body = { budget: { credits_per_month: credits } };
    expect((await first.call("PATCH", "/v1/workspace", { body })).status).toBe(200);
    await until(
      async () => (await second.call("GET", "/v1/workspace")).body.budget.credits_per_month === credits,
    );
  }

  const rows = () => started.database.query("SELECT * FROM budget_reservations");
  async function spent(): Promise<number> {
    const totals = await Promise.all(
      started.nodes.map(
        async ({ call }) => (await call("GET", "/v1/workspace")).body.usage.credits_this_month,
      ),
    );
    expect(new Set(totals).size).toBe(1);
    const [sum] = await started.database.query<{ all: string }>('SELECT SUM(credits) AS "all" FROM spending');
    expect(Number(sum?.all)).toBe(Math.round(totals[0] * CREDIT));
    return Number(sum?.all);
  }

  test("for ten calls is spent by ten of forty", async () => {
    await setMonth(10);
    model.script("paid", worth(1_000));
    expect(await many(40)).toEqual({ 200: 10, 402: 30 });
    expect(await spent()).toBe(10 * CREDIT);
    await until(async () => (await rows()).length === 0);
    const entries = await ledger(first);
    expect(unsettled(entries)).toEqual([]);
    const told = entries.filter(({ action }) => action === "budget.warn" || action === "limit.exceeded");
    expect(told.map(({ action, detail }) => [action, detail?.spent])).toEqual([
      ["budget.warn", 8 * CREDIT],
      ["limit.exceeded", 10 * CREDIT],
    ]);
  });

  test("is not refused before it is spent, if calls cost less than they reserve", async () => {
    await setMonth(5);
    model.script("paid", worth(500));
    expect(await many(24)).toEqual({ 200: 10, 402: 14 });
    expect(await spent()).toBe(5 * CREDIT);
  });

  test("is waited for by the other node's call, which begins as soon as the reservation is released", async () => {
    await setMonth(1);
    const held = gate();
    let asked = 0;
    model.script("paid", () => {
      asked += 1;
      return { ...worth(asked === 1 ? 100 : 200), gate: asked === 1 ? held.opened : Promise.resolve() };
    });
    const body = { model: "up/paid", messages: [{ role: "user", content: "hi" }], max_tokens: 1_000 };
    const out = first.call("POST", "/v1/chat/completions", { body });
    await until(() => asked === 1);
    expect(await rows()).toHaveLength(1);
    const waiting = second.call("POST", "/v1/chat/completions", { body });
    await Bun.sleep(300);
    expect(asked).toBe(1);
    held.open();
    expect((await out).status).toBe(200);
    expect((await waiting).status).toBe(200);
    expect(await spent()).toBe(0.3 * CREDIT);
  });
});

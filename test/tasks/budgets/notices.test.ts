/** Reports about a budget that runs out: once each in the ledger, to the webhook and in the metrics. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type FakeReceiver, startReceiver } from "../../notify/support.ts";
import { FakeClock } from "../../support/clock.ts";
import { ledger, run, type Stage, startStage, until } from "../support.ts";
import { notices, worth } from "./support.ts";

setDefaultTimeout(60_000);

const CREDIT = 1_000_000;
const DAY = 86_400_000;

let clock: FakeClock;
let receiver: FakeReceiver;
let stage: Stage;
beforeEach(async () => {
  receiver = startReceiver();
  clock = new FakeClock(Date.UTC(2026, 0, 15, 12));
  const more = `notify: { webhook: "${receiver.url}" }`;
  stage = await startStage({ clock, tiers: { 1: ["a"] }, prices: { a: [0, 1] }, more, timeoutMs: 3_600_000 });
});
afterEach(async () => {
  await stage.stop();
  await receiver.close();
});

const spend = (tokens: number) => {
  stage.upstream.script("a", worth(tokens));
  return run(stage.gateway, { agent: "clerk" });
};
const posted = () =>
  receiver.posted
    .map(({ body }) => body)
    .filter(({ type }) => type !== "task.finished" && !/checkpoint/.test(type));

test("four fifths and the end are each reported exactly when reached, and again each day", async () => {
  await stage.gateway.agent("clerk", { budget: { credits_per_day: 1 } });
  await spend(799);
  expect(await notices(stage.gateway)).toEqual([]);
  await spend(1);
  await spend(199);
  const warned = [["budget.warn", "agent_day", 800_000]];
  expect(await notices(stage.gateway)).toEqual(warned);
  await spend(500);
  const all = [...warned, ["limit.exceeded", "agent_day", 1_499_000]];
  expect(await notices(stage.gateway)).toEqual(all);
  clock.suspend(DAY);
  await spend(2_000);
  expect(await notices(stage.gateway)).toEqual([
    ...all,
    ["budget.warn", "agent_day", 2 * CREDIT],
    ["limit.exceeded", "agent_day", 2 * CREDIT],
  ]);
});

test("entries, webhook and metrics name the budget's owner, its size and the amount spent", async () => {
  await stage.gateway.agent("clerk", { budget: { credits_per_day: 4 } });
  await stage.gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: 5 } } });
  await spend(4_000);
  await spend(1_000).catch(() => {});
  const entries = await ledger(stage.gateway);
  const warnings = entries.filter(({ action }) => action === "budget.warn");
  expect(warnings).toMatchObject([
    {
      phase: "single",
      outcome: "allowed",
      channel: "system",
      actor: "system",
      agent: "clerk",
      detail: { budget: "agent_day", percent: 80, spent: 4 * CREDIT, budget_limit: 4 * CREDIT },
    },
    {
      agent: null,
      detail: { budget: "workspace_month", percent: 80, spent: 4 * CREDIT, budget_limit: 5 * CREDIT },
    },
  ]);
  expect(entries.filter(({ action }) => action === "limit.exceeded")).toMatchObject([
    {
      outcome: "allowed",
      actor: "system",
      agent: "clerk",
      detail: { limit: "credits", budget: "agent_day", spent: 4 * CREDIT, budget_limit: 4 * CREDIT },
    },
  ]);
  await until(() => posted().length === 3);
  const own = { workspace: "default", budget: "agent_day", agent: "clerk", spent: 4, budget_limit: 4 };
  const sent = posted().sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  expect(sent.map(({ type, data }) => [type, data])).toEqual(
    [
      ["budget.warning", { ...own, percent: 80 }],
      ["limit.exceeded", { ...own, limit: "credits", enforcement: "enforced" }],
      [
        "budget.warning",
        { workspace: "default", budget: "workspace_month", spent: 4, budget_limit: 5, percent: 80 },
      ],
    ].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))) as never,
  );
  const { body } = await stage.gateway.call("GET", "/metrics");
  expect(body).toContain('gatehouse_budgets_spent_total{workspace="default",percent="80"} 2');
  expect(body).toContain('gatehouse_budgets_spent_total{workspace="default",percent="100"} 1');
});

const BUDGETS = [
  [
    "an agent's day",
    "agent_day",
    (credits: number | null) =>
      stage.gateway.call("PATCH", "/v1/agents/clerk", { body: { budget: { credits_per_day: credits } } }),
    () => stage.gateway.call("PATCH", "/v1/agents/clerk", { body: { description: "changed" } }),
  ],
  [
    "a workspace's month",
    "workspace_month",
    (credits: number | null) =>
      stage.gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: credits } } }),
    () => stage.gateway.call("PATCH", "/v1/workspace", { body: { limits: { concurrent_tasks: 9 } } }),
  ],
] as const;

describe.each(BUDGETS)("a change of the budget of %s", (_name, budget, set, changeElse) => {
  const must = async (answer: Promise<{ status: number }>) => expect((await answer).status).toBe(200);
  const warned = (spent: number) => ["budget.warn", budget, spent * CREDIT];
  const exceeded = (spent: number) => ["limit.exceeded", budget, spent * CREDIT];
  beforeEach(() => stage.gateway.agent("clerk"));

  test("reports nothing if less than four fifths are spent, or if it is raised or removed", async () => {
    await spend(4_000);
    await must(set(5.000002));
    await must(set(9));
    await must(set(null));
    expect(await notices(stage.gateway)).toEqual([]);
    expect(posted()).toEqual([]);
  });

  test("reports four fifths once, and the end once, if it is lowered to what is spent", async () => {
    await spend(4_000);
    await must(set(10));
    await must(set(5));
    expect(await notices(stage.gateway)).toEqual([warned(4)]);
    await must(set(5));
    await must(set(4.5));
    await must(changeElse());
    expect(await notices(stage.gateway)).toEqual([warned(4)]);
    await must(set(4));
    await must(set(3));
    await must(changeElse());
    const refused = await stage.gateway.call("POST", "/v1/tasks", { body: { agent: "clerk", prompt: "hi" } });
    expect([refused.status, refused.body.code]).toEqual([402, "credits_exhausted"]);
    expect(await notices(stage.gateway)).toEqual([warned(4), exceeded(4)]);
    await until(() => posted().length === 2);
    expect(
      posted()
        .map(({ type, data }) => [type, data.budget, data.spent, data.budget_limit])
        .sort(),
    ).toEqual([
      ["budget.warning", budget, 4, 5],
      ["limit.exceeded", budget, 4, 4],
    ] as never);
    const { body } = await stage.gateway.call("GET", "/metrics");
    for (const percent of [80, 100]) {
      expect(body).toContain(`gatehouse_budgets_spent_total{workspace="default",percent="${percent}"} 1`);
    }
  });

  test("reports both after the entry of the change if it is the first budget and already spent, and neither again later", async () => {
    await spend(2_000);
    await must(set(2));
    expect(await notices(stage.gateway)).toEqual([warned(2), exceeded(2)]);
    const change = budget === "agent_day" ? "agent.update" : "config.change";
    const actions = (await ledger(stage.gateway)).map(({ action }) => action);
    expect(actions.slice(actions.indexOf(change)).slice(0, 3)).toEqual([
      change,
      "budget.warn",
      "limit.exceeded",
    ]);
    await must(set(2.2));
    await spend(1_000);
    expect(await notices(stage.gateway)).toEqual([warned(2), exceeded(2), exceeded(3)]);
  });

  test("to 0 reports it as spent, although nothing was", async () => {
    await must(set(0));
    await must(set(0));
    expect(await notices(stage.gateway)).toEqual([warned(0), exceeded(0)]);
  });
});

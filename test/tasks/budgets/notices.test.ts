/** What is told of a budget that runs out: in the ledger, to the webhook and in the metrics, once each. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
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

test("four fifths are told exactly where they are reached, all where it is spent, and each day anew", async () => {
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
  clock.advance(DAY);
  await spend(2_000);
  expect(await notices(stage.gateway)).toEqual([
    ...all,
    ["budget.warn", "agent_day", 2 * CREDIT],
    ["limit.exceeded", "agent_day", 2 * CREDIT],
  ]);
});

test("the entries, the webhook and the metrics say whose budget it is, and how much of what is spent", async () => {
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
      detail: { budget: "agent_day", percent: 80, spent: 4 * CREDIT, limit: 4 * CREDIT },
    },
    {
      agent: null,
      detail: { budget: "workspace_month", percent: 80, spent: 4 * CREDIT, limit: 5 * CREDIT },
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
  const own = { workspace: "default", budget: "agent_day", agent: "clerk", spent: 4, credits: 4 };
  const sent = posted().sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  expect(sent.map(({ type, data }) => [type, data])).toEqual(
    [
      ["budget.warning", { ...own, percent: 80 }],
      ["limit.exceeded", { ...own, limit: "credits", enforcement: "enforced" }],
      [
        "budget.warning",
        { workspace: "default", budget: "workspace_month", spent: 4, credits: 5, percent: 80 },
      ],
    ].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))) as never,
  );
  const { body } = await stage.gateway.call("GET", "/metrics");
  expect(body).toContain('gatehouse_budgets_spent_total{workspace="default",percent="80"} 2');
  expect(body).toContain('gatehouse_budgets_spent_total{workspace="default",percent="100"} 1');
});

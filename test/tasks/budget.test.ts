import { afterAll, beforeAll, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { run, type Stage, startStage } from "./support.ts";

const HOUR = 3_600_000;
// The last hour of a day and of its month.
const clock = new FakeClock(Date.UTC(2026, 0, 31, 23));
let stage: Stage;

beforeAll(async () => {
  stage = await startStage({ clock, tiers: { 1: ["a"] }, prices: { a: [1, 0] }, timeoutMs: 3_600_000 });
  stage.upstream.script("a", { chunks: ["ok"], usage: { prompt_tokens: 1000, completion_tokens: 0 } });
});
afterAll(() => stage.stop());

const post = async (agent: string) => {
  const answer = await stage.gateway.call("POST", "/v1/tasks", { body: { agent, prompt: "hi" } });
  return [answer.status, answer.body.code];
};
const month = async () => (await stage.gateway.call("GET", "/v1/workspace")).body.usage.credits_this_month;

test("an agent's budget covers its day (UTC) and only that agent", async () => {
  const { gateway } = stage;
  await gateway.agent("daily", { budget: { credits_per_day: 1.5 } });
  await gateway.agent("free");
  expect((await run(gateway, { agent: "daily" })).credits_consumed).toBe(1);
  // One of two credits is spent. The next call may overdraw what is left.
  expect((await run(gateway, { agent: "daily" })).credits_consumed).toBe(1);
  expect(await post("daily")).toEqual([402, "credits_exhausted"]);
  expect((await run(gateway, { agent: "free" })).status).toBe("succeeded");
  clock.advance(HOUR - 1);
  expect(await post("daily")).toEqual([402, "credits_exhausted"]);
  clock.advance(1);
  expect((await run(gateway, { agent: "daily" })).status).toBe("succeeded");
});

test("raising or removing a budget takes effect at once", async () => {
  const { gateway } = stage;
  await gateway.agent("raised", { budget: { credits_per_day: 1 } });
  await run(gateway, { agent: "raised" });
  expect(await post("raised")).toEqual([402, "credits_exhausted"]);
  await gateway.call("PATCH", "/v1/agents/raised", { body: { budget: { credits_per_day: 1.000001 } } });
  expect((await run(gateway, { agent: "raised" })).status).toBe("succeeded");
  expect(await post("raised")).toEqual([402, "credits_exhausted"]);
  await gateway.call("PATCH", "/v1/agents/raised", { body: { budget: { credits_per_day: null } } });
  expect((await run(gateway, { agent: "raised" })).status).toBe("succeeded");
});

test("a workspace's budget covers its month (UTC), over all agents", async () => {
  const { gateway } = stage;
  await gateway.agent("one");
  await gateway.agent("two");
  const spent: number = await month();
  await gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: spent + 2 } } });
  await run(gateway, { agent: "one" });
  await run(gateway, { agent: "two" });
  expect(await month()).toBe(spent + 2);
  for (const agent of ["one", "two"]) expect(await post(agent)).toEqual([402, "credits_exhausted"]);
  const end = Date.UTC(2026, 2, 1);
  clock.setWall(end - 1);
  expect(await post("one")).toEqual([402, "credits_exhausted"]);
  clock.setWall(end);
  expect(await month()).toBe(0);
  expect((await run(gateway, { agent: "one" })).status).toBe("succeeded");
  expect(await month()).toBe(1);
});

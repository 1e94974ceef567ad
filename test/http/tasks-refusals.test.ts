import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dispatch, ended, ledger, run, type Stage, startStage } from "../tasks/support.ts";

let stage: Stage;
let narrow: string;
let spent: string;

beforeAll(async () => {
  stage = await startStage({
    tiers: { 1: ["a"], 2: ["b"], 3: ["dear"] },
    prices: { dear: [1000, 1000] },
  });
  const { gateway } = stage;
  await gateway.agent("plain");
  await gateway.agent("low", { tier_policy: { tiers: [1] } });
  await gateway.agent("no-a", { tier_policy: { models: { deny: ["up/a"] } } });
  await gateway.agent("lost", { tier_policy: { tiers: [9] } });
  await gateway.agent("toolless", { tools: [] });
  await gateway.agent("halted");
  await gateway.call("POST", "/v1/agents/halted/stop");
  await gateway.agent("broke", { budget: { credits_per_day: 0 } });
  await gateway.agent("spender", { budget: { credits_per_day: 0.5 } });
  await run(gateway, { agent: "spender", tier: 3 });
  narrow = await gateway.token({ scopes: ["tasks:write", "tools:vault.*"] });
  spent = await gateway.workspace("spent");
  await gateway.call("POST", "/v1/agents", {
    token: spent,
    body: { name: "plain", owner: "tests", memory_scope: "support" },
  });
});
afterAll(() => stage.stop());

const ok = { agent: "plain", prompt: "hi" };
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));

type Case = [name: string, request: object, status: number, code: string, as?: "narrow"];
const REFUSED: Case[] = [
  ["an agent that does not exist", { ...ok, agent: "nobody" }, 404, "agent_not_found"],
  [
    "an agent that does not exist before everything else",
    { ...ok, agent: "no", tier: 9, tools: ["x.y"] },
    404,
    "agent_not_found",
  ],
  ["a stopped agent", { ...ok, agent: "halted" }, 409, "agent_stopped"],
  ["a tier that is not configured", { ...ok, tier: 4 }, 422, "unknown_tier"],
  ["an unknown tier before a forbidden one", { ...ok, agent: "low", tier: 4 }, 422, "unknown_tier"],
  ["a tier outside the policy", { ...ok, agent: "low", tier: 2 }, 403, "tier_forbidden"],
  ["no tier, and none configured", { ...ok, agent: "lost" }, 403, "tier_forbidden"],
  [
    "a forbidden tier before an unknown tool",
    { ...ok, agent: "low", tier: 2, tools: ["x.y"] },
    403,
    "tier_forbidden",
  ],
  ["a tier without an allowed model", { ...ok, agent: "no-a" }, 403, "model_forbidden"],
  [
    "a forbidden model before an unknown tool",
    { ...ok, agent: "no-a", tools: ["x.y"] },
    403,
    "model_forbidden",
  ],
  ["a tool that does not exist", { ...ok, tools: ["x.y"] }, 422, "unknown_tool"],
  ["a tool by its name over MCP", { ...ok, tools: ["time__now"] }, 422, "unknown_tool"],
  [
    "an unknown tool before a forbidden one",
    { ...ok, agent: "toolless", tools: ["time.now", "x.y"] },
    422,
    "unknown_tool",
  ],
  [
    "a tool that the agent may not use",
    { ...ok, agent: "toolless", tools: ["time.now"] },
    403,
    "tool_forbidden",
  ],
  ["a tool that the token may not use", { ...ok, tools: ["time.now"] }, 403, "tool_forbidden", "narrow"],
  [
    "a forbidden tool before an exhausted budget",
    { ...ok, agent: "broke", tools: ["x.y"] },
    422,
    "unknown_tool",
  ],
  ["an agent without any budget", { ...ok, agent: "broke" }, 402, "credits_exhausted"],
  ["an agent that has spent its day", { ...ok, agent: "spender" }, 402, "credits_exhausted"],
  ["an empty prompt", { ...ok, prompt: "" }, 422, "validation_failed"],
  ["a prompt of 1,000,001 characters", { ...ok, prompt: "x".repeat(1_000_001) }, 422, "validation_failed"],
  ["a prompt that is not text", { ...ok, prompt: 1 }, 422, "validation_failed"],
  ["no prompt", { agent: "plain" }, 422, "validation_failed"],
  ["no agent", { prompt: "hi" }, 422, "validation_failed"],
  ["17 metadata pairs", { ...ok, metadata: pairs(17) }, 422, "validation_failed"],
  ["metadata that is not text", { ...ok, metadata: { k: 1 } }, 422, "validation_failed"],
  ["tier 0", { ...ok, tier: 0 }, 422, "validation_failed"],
  ["tier 1.5", { ...ok, tier: 1.5 }, 422, "validation_failed"],
  ["a tier as text", { ...ok, tier: "1" }, 422, "validation_failed"],
  ["tools that are not a list", { ...ok, tools: "time.now" }, 422, "validation_failed"],
  ["an unknown field", { ...ok, model: "up/a" }, 422, "validation_failed"],
  ["an array", [ok], 422, "validation_failed"],
];

describe("a dispatch is refused for", () => {
  test.each(REFUSED)("%s", async (...[, body, status, code, as]: Case) => {
    const { gateway, upstream } = stage;
    const asked = upstream.requests.length;
    const before = (await gateway.call("GET", "/v1/tasks?limit=1")).body.data[0].id;
    const credits = (await gateway.call("GET", "/v1/workspace")).body.usage.credits_this_month;
    const answer = await gateway.call("POST", "/v1/tasks", as ? { body, token: narrow } : { body });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body).toMatchObject({ type: `urn:gatehouse:problem:${code}`, status });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");

    const seq = answer.headers.get("gatehouse-ledger");
    const entry = (await gateway.call("GET", `/v1/ledger/${seq}`)).body;
    expect(entry).toMatchObject({ phase: "single", action: "task.dispatch", outcome: "denied", code });
    expect(entry.request_id).toBe(answer.headers.get("gatehouse-request-id"));
    expect((await gateway.call("GET", "/v1/tasks?limit=1")).body.data[0].id).toBe(before);
    expect((await gateway.call("GET", "/v1/workspace")).body.usage.credits_this_month).toBe(credits);
    expect(upstream.requests.length).toBe(asked);
  });

  test("a workspace that has spent its monthly budget, until the budget is raised or removed", async () => {
    const { gateway } = stage;
    const post = () => gateway.call("POST", "/v1/tasks", { token: spent, body: ok });
    const budget = (credits_per_month: number | null) =>
      gateway.call("PATCH", "/v1/workspace", { token: spent, body: { budget: { credits_per_month } } });
    await budget(0);
    const refused = await post();
    expect([refused.status, refused.body.code]).toEqual([402, "credits_exhausted"]);
    const denied = (await ledger(gateway, spent)).filter(({ outcome }) => outcome === "denied");
    expect(denied).toMatchObject([
      { action: "task.dispatch", code: "credits_exhausted", agent: "plain", tier: 1 },
    ]);
    await budget(0.000001);
    expect((await post()).status).toBe(202);
    await budget(null);
    expect((await post()).status).toBe(202);
  });

  test("a different agent from the token's own, whether or not it exists", async () => {
    const { gateway } = stage;
    const token = await gateway.token({ agent: "plain" });
    for (const agent of ["low", "nobody"]) {
      const answer = await gateway.call("POST", "/v1/tasks", { token, body: { ...ok, agent } });
      expect([answer.status, answer.body.code]).toEqual([403, "agent_forbidden"]);
    }
  });
});

test("the fields of a refused request are named", async () => {
  const body = { agent: "plain", prompt: "", tier: 0, extra: true };
  const answer = await stage.gateway.call("POST", "/v1/tasks", { body });
  const paths = answer.body.errors.map(({ path }: { path: string }) => path);
  expect(paths.sort()).toEqual(["/extra", "/prompt", "/tier"]);
});

test.each([
  ["one character", "x"],
  ["1,000,000 characters", "x".repeat(1_000_000)],
  ["1,000,000 characters outside the basic plane", "😀".repeat(1_000_000)],
])("a prompt of %s is accepted", async (_name, prompt) => {
  const { gateway } = stage;
  stage.upstream.script("a", { chunks: ["ok"] });
  const task = await ended(gateway, await dispatch(gateway, { agent: "plain", prompt }));
  expect(task.status).toBe("succeeded");
  expect(task.prompt === prompt).toBe(true);
});

test("16 metadata pairs are accepted and read back", async () => {
  const task = await run(stage.gateway, { agent: "plain", metadata: pairs(16) });
  expect(task.metadata).toEqual(pairs(16));
});

test("no refusal has cost a credit: only the spender's one task has", async () => {
  const spending = (await ledger(stage.gateway)).filter(({ credits = 0 }) => credits > 0);
  expect(spending.map(({ action, agent, phase }) => [action, agent, phase])).toEqual([
    ["model.call", "spender", "outcome"],
    ["task.dispatch", "spender", "outcome"],
  ]);
});

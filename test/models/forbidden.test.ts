import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { allowsModel, allowsTier, type TierPolicy } from "../../src/access/tier-policy.ts";
import { FakeClock } from "../support/clock.ts";
import type { Behaviour } from "../support/fake-model.ts";
import { dispatch, ended, gate, ledger, type Stage, startStage, unsettled } from "../tasks/support.ts";

const NAMES = ["a", "b", "ab", "c"] as const;
const TIERS: Record<number, string[]> = {
  1: ["a", "b", "ab", "c"],
  2: ["c", "gone/x", "b", "a"],
  3: ["ab", "a"],
};
const TIMEOUT = 60_000;

let stage: Stage;
const clock = new FakeClock();
let hanging = 0;
/**
 * Hanging calls for which time has been advanced. A call may reach the upstream before the test waits for its task.
 */
let passed = 0;

beforeAll(async () => {
  // Nothing listens on port 1.
  const gone = '{ kind: openai-compatible, base_url: "http://127.0.0.1:1/v1" }';
  stage = await startStage({ tiers: TIERS, clock, timeoutMs: TIMEOUT, providers: { gone } });
});
afterAll(() => stage.stop());

const pattern = fc.constantFrom("*", "up/*", "up/a", "up/b", "up/c", "*b", "up/a*", "gone/*", "none");
const policies = fc.record({
  tiers: fc.option(fc.uniqueArray(fc.constantFrom(1, 2, 3)), { nil: null }),
  models: fc.record({
    allow: fc.oneof(fc.constant(["*"]), fc.array(pattern, { maxLength: 2 })),
    deny: fc.array(pattern, { maxLength: 2 }),
  }),
});
const FAILURES = ["ok", "500", "429", "400", "cut", "noFinish", "hang", "tools"] as const;
const failures = fc.record(Object.fromEntries(NAMES.map((name) => [name, fc.constantFrom(...FAILURES)])));

function behaviour(kind: string, call: number): Behaviour {
  switch (kind) {
    case "cut":
      return { chunks: ["half ", "an answer"], cutAfter: 1 };
    case "noFinish":
      return { chunks: ["half"], noFinish: true };
    case "hang":
      hanging++;
      return { hang: true };
    case "tools":
      return call < 2 ? { toolCalls: [{ name: "time__now", arguments: {} }] } : { chunks: ["done"] };
    case "ok":
      return { chunks: ["ok"] };
    default:
      return { status: Number(kind) };
  }
}

/** Advances time for each hanging call until the task has ended. */
async function endedInTime(id: string) {
  let done = false;
  const task = ended(stage.gateway, id).finally(() => {
    done = true;
  });
  while (!done) {
    await new Promise((resolve) => setImmediate(resolve));
    if (hanging > passed) {
      passed = hanging;
      clock.advance(TIMEOUT);
    }
  }
  return task;
}

function tierPolicy({ tiers, models }: TierPolicy) {
  return tiers === null ? { models } : { tiers, models };
}

let agents = 0;

test("whatever fails, the upstream never sees a model that the policy forbids", async () => {
  const { gateway, upstream } = stage;
  await fc.assert(
    fc.asyncProperty(policies, fc.constantFrom(1, 2, 3), failures, async (policy, tier, kinds) => {
      const agent = `agent-${agents++}`;
      await gateway.agent(agent, { tier_policy: tierPolicy(policy) });
      hanging = 0;
      passed = 0;
      for (const name of NAMES)
        upstream.script(name, (_request, call) => behaviour(kinds[name] ?? "ok", call));
      const asked = upstream.requests.length;
      const body = { agent, tier, prompt: "hi", tools: ["time.now"] };
      const answer = await gateway.call("POST", "/v1/tasks", { body });
      if (answer.status === 202) {
        const task = await endedInTime(answer.body.id);
        expect(["succeeded", "failed"]).toContain(task.status);
      } else expect(["tier_forbidden", "model_forbidden"]).toContain(answer.body.code);
      for (const { model } of upstream.requests.slice(asked)) {
        expect(answer.status).toBe(202);
        expect(allowsModel(policy, `up/${model}`) && allowsTier(policy, tier)).toBe(true);
        expect(TIERS[tier]).toContain(model);
      }
    }),
    { numRuns: 60 },
  );
  expect(unsettled(await ledger(gateway))).toEqual([]);
}, 60_000);

const CHANGES: [name: string, change: object][] = [
  ["forbids all other models", { models: { deny: ["up/b", "up/ab", "up/c"] } }],
  ["forbids all models", { models: { allow: [] } }],
  ["forbids the tier", { tiers: [2] }],
];

test.each(CHANGES)("a change that %s applies to a pending fallback", async (_name, change) => {
  const { gateway, upstream } = stage;
  const agent = `agent-${agents++}`;
  await gateway.agent(agent);
  const [asked, fail] = [gate(), gate()];
  upstream.script("a", () => {
    asked.open();
    return { chunks: ["half"], gate: fail.opened, noFinish: true };
  });
  const before = upstream.requests.length;
  const id = await dispatch(gateway, { agent });
  await asked.opened;
  expect((await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tier_policy: change } })).status).toBe(
    200,
  );
  fail.open();
  const task = await ended(gateway, id);
  expect(task).toMatchObject({ status: "failed", error: { code: "model_unavailable" } });
  expect(upstream.requests.slice(before).map(({ model }) => model)).toEqual(["a"]);
});

test.each([
  ["the one in use", { models: { deny: ["up/a"] } }, ["a", "b"], "succeeded"],
  ["all models", { models: { allow: [] } }, ["a"], "failed"],
  ["the tier", { tiers: [2] }, ["a"], "failed"],
])("a change that forbids %s applies from the next step on", async (_name, change, models, status) => {
  const { gateway, upstream } = stage;
  const agent = `agent-${agents++}`;
  await gateway.agent(agent);
  const [asked, answer] = [gate(), gate()];
  upstream.script("a", () => {
    asked.open();
    return { toolCalls: [{ name: "time__now", arguments: {} }], gate: answer.opened };
  });
  upstream.script("b", { chunks: ["done"] });
  const before = upstream.requests.length;
  const id = await dispatch(gateway, { agent, tools: ["time.now"] });
  await asked.opened;
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tier_policy: change } });
  answer.open();
  const task = await ended(gateway, id);
  expect(task.status).toBe(status);
  if (status === "failed") expect(task.error.code).toBe("model_unavailable");
  expect(upstream.requests.slice(before).map(({ model }) => model)).toEqual(models);
  const calls = (await ledger(gateway)).filter((entry) => entry.task === id && entry.phase === "intent");
  expect(calls.flatMap(({ model }) => (model ? [model] : []))).toEqual(models.map((model) => `up/${model}`));
});

test("in the ledger, no intent for a model follows the change that forbids it", async () => {
  const { gateway, upstream } = stage;
  upstream.script("a", { chunks: ["ok"] });
  upstream.script("b", { chunks: ["ok"] });
  const agent = `agent-${agents++}`;
  await gateway.agent(agent);
  const dispatched = Array.from({ length: 40 }, () => dispatch(gateway, { agent }));
  const patched = gateway.call("PATCH", `/v1/agents/${agent}`, {
    body: { tier_policy: { models: { deny: ["up/a"] } } },
  });
  const ids = await Promise.all(dispatched);
  await patched;
  for (const id of ids) expect((await ended(gateway, id)).status).toBe("succeeded");
  const entries = (await ledger(gateway)).filter((entry) => entry.agent === agent);
  const changed = entries.findIndex(({ action }) => action === "agent.update");
  expect(changed).toBeGreaterThan(0);
  const after = entries
    .slice(changed)
    .filter(({ phase, action }) => phase === "intent" && action === "model.call");
  expect(after.filter(({ model }) => model === "up/a")).toEqual([]);
});

/**
 * Patterns that restrict an agent mean what their author meant, or are refused. None is taken literally and so
 * forbids nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ownConnection } from "../support/own-connection.ts";
import { reseal } from "../support/seals.ts";
import { type Stage, startStage, until } from "../tasks/support.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["GPT-4o"], 2: ["gpt-5"] } });
});
afterAll(() => stage.stop());

const minimal = { owner: "tests", memory_scope: "support" };
const create = (body: object) => stage.gateway.call("POST", "/v1/agents", { body: { ...minimal, ...body } });
const dispatch = (agent: string, more: object = {}) =>
  stage.gateway.call("POST", "/v1/tasks", { body: { agent, prompt: "hi", ...more } });

const FIELDS = [
  ["/tier_policy/models/deny/1", (bad: string) => ({ tier_policy: { models: { deny: ["up/a", bad] } } })],
  ["/tier_policy/models/allow/0", (bad: string) => ({ tier_policy: { models: { allow: [bad] } } })],
  ["/tools/0", (bad: string) => ({ tools: [bad, "*"] })],
  ["/approvals/0", (bad: string) => ({ approvals: [bad] })],
] as const;

describe.each(FIELDS)("a pattern in %s", (path, body) => {
  test.each(["up/gpt-[45]*", "{a,b}.c", "!up/*", "up/a, up/b", "up/a ", " *", "^up/.*$", "up/modèle"])(
    "that is not a glob is refused with the field's name: %p",
    async (bad) => {
      await create({ name: "kept" });
      for (const answer of [
        await create({ name: "refused", ...body(bad) }),
        await stage.gateway.call("PATCH", "/v1/agents/kept", { body: body(bad) }),
      ]) {
        expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
        expect(answer.body.errors.map((error: { path: string }) => error.path)).toEqual([path]);
      }
      expect((await stage.gateway.call("GET", "/v1/agents/refused")).status).toBe(404);
      expect((await stage.gateway.call("GET", "/v1/agents/kept")).body.version).toBe(1);
    },
  );
});

test.each([
  [1, "up/gpt-4*", "in another case"],
  [1, "up/GPT-??", "with ? for one character"],
  [1, "gpt-4o", "without its provider"],
  [2, "up/gpt-?", "with ? for one character"],
])("a model of tier %d is denied by %p, %s, and nothing reaches it", async (tier, deny) => {
  const name = `denied-${tier}-${Bun.hash(deny).toString(36)}`;
  expect((await create({ name, tier_policy: { models: { deny: [deny] } } })).status).toBe(201);
  const before = stage.upstream.requests.length;
  const answer = await dispatch(name, { tier });
  expect([answer.status, answer.body.code]).toEqual([403, "model_forbidden"]);
  expect(stage.upstream.requests.length).toBe(before);
});

test("a policy that an older version stored with an invalid pattern denies every model, and reports why", async () => {
  await create({ name: "older" });
  store("older", "tier_policy", { tiers: null, models: { allow: ["*"], deny: ["none/[a-z]"] } });
  const answer = await dispatch("older");
  expect([answer.status, answer.body.code]).toEqual([403, "model_forbidden"]);
  expect(answer.body.detail).toContain('"none/[a-z]"');
});

test("approvals that an older version stored with an invalid pattern are required for every call", async () => {
  stage.upstream.script("GPT-4o", { toolCalls: [{ name: "time__now", arguments: {} }] });
  await create({ name: "asking" });
  store("asking", "approvals", ["time.[n]ow"]);
  const { body } = await dispatch("asking", { tools: ["time.now"] });
  await until(
    async () => (await stage.gateway.call("GET", `/v1/tasks/${body.id}`)).body.status === "awaiting_approval",
  );
});

test.each(["TIME.Now", "now", "time__*", "time.no?"])(
  "an approval is required if approvals is %p",
  async (pattern) => {
    stage.upstream.script("GPT-4o", { toolCalls: [{ name: "time__now", arguments: {} }] });
    const name = `asks-${Bun.hash(pattern).toString(36)}`;
    expect((await create({ name, approvals: [pattern] })).status).toBe(201);
    const { body } = await dispatch(name, { tools: ["time.now"] });
    await until(
      async () =>
        (await stage.gateway.call("GET", `/v1/tasks/${body.id}`)).body.status === "awaiting_approval",
    );
  },
);

test("a token's scope with ? covers one character, and grants no more", async () => {
  const holder = await stage.gateway.token({ scopes: ["tokens:write", "tools:time.no?"] });
  const issue = (scope: string) =>
    stage.gateway.call("POST", "/v1/tokens", { token: holder, body: { name: "n", scopes: [scope] } });
  const answers = await Promise.all(
    ["tools:time.*", "tools:time.no*", "tools:time.no?", "tools:time.now"].map(issue),
  );
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 201, 201]);
});

/** Stores a value as an older version left it. Call it before the agent is first read. */
function store(agent: string, column: "tier_policy" | "approvals", value: unknown): void {
  const file = ownConnection(stage.gateway.dataDir);
  file.query(`UPDATE agents SET ${column} = ? WHERE name = ?`).run(JSON.stringify(value), agent);
  reseal(file, stage.gateway.dataDir, "agents");
}

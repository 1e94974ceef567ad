import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";

const clock = new FakeClock();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ clock });
});
afterAll(() => gateway.stop());

const minimal = { owner: "Ada", memory_scope: "support" };
const create = (body: object) => gateway.call("POST", "/v1/agents", { body });
const change = (name: string, body: object) => gateway.call("PATCH", `/v1/agents/${name}`, { body });
const read = (name: string) => gateway.call("GET", `/v1/agents/${name}`);

function expectRefused(answer: Answered, path: string): void {
  expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
  const paths: string[] = answer.body.errors.map((error: { path: string }) => error.path);
  expect(paths.some((each) => each === path || each.startsWith(`${path}/`))).toBe(true);
}

test("three fields suffice; everything else is read back with its default", async () => {
  const answer = await create({ name: "minimal", ...minimal });
  const now = new Date(clock.now()).toISOString();
  expect(answer.status).toBe(201);
  expect(answer.headers.get("location")).toBe("/v1/agents/minimal");
  expect(answer.body).toEqual({
    name: "minimal",
    owner: "Ada",
    memory_scope: ["support"],
    description: null,
    instructions: null,
    tier_policy: { tiers: [1, 2], models: { allow: ["*"], deny: [] } },
    tools: ["*"],
    approvals: null,
    approvals_required: 1,
    max_steps: 20,
    budget: { credits_per_day: null },
    status: "active",
    version: 1,
    created_at: now,
    updated_at: now,
  });
  expect((await read("minimal")).body).toEqual(answer.body);
  const list = await gateway.call("GET", "/v1/agents");
  expect(list.body.data).toContainEqual(answer.body);
});

test("every field can be given, and is read back unchanged", async () => {
  const fields = {
    owner: 'Team "A" – ünïcode 🏦 \u202eRTL\u202c',
    memory_scope: ["support", "legal/contracts"],
    description: "d",
    instructions: "Be brief.\n\u0000\ttabs and NUL",
    tier_policy: { tiers: [2], models: { allow: ["builtin/*"], deny: ["*/nano"] } },
    tools: ["vault.*", "time.now"],
    approvals: ["vault.write"],
    max_steps: 7,
    budget: { credits_per_day: 12.345678 },
  };
  const answer = await create({ name: "whole", ...fields });
  expect(answer.status).toBe(201);
  expect((await read("whole")).body).toMatchObject(fields);
});

test("a change of a tier policy changes only what it names", async () => {
  await create({ ...minimal, name: "merged", tier_policy: { tiers: [2], models: { deny: ["y"] } } });
  const change = async (policy: object) =>
    (await gateway.call("PATCH", "/v1/agents/merged", { body: { tier_policy: policy } })).body.tier_policy;
  expect(await change({ tiers: [1] })).toEqual({ tiers: [1], models: { allow: ["*"], deny: ["y"] } });
  expect(await change({ models: { allow: ["x"] } })).toEqual({
    tiers: [1],
    models: { allow: ["x"], deny: ["y"] },
  });
  expect(await change({ models: { deny: [] } })).toEqual({ tiers: [1], models: { allow: ["x"], deny: [] } });
  expect(await change({})).toEqual({ tiers: [1], models: { allow: ["x"], deny: [] } });
});

test("the ledger records which fields a change set and what the agent may do, and identifies versions by a hash", async () => {
  await create({ ...minimal, name: "traced", instructions: "secret plan" });
  await gateway.call("PATCH", "/v1/agents/traced", { body: { tools: [], tier_policy: { tiers: [1] } } });
  await gateway.call("DELETE", "/v1/agents/traced");
  const { body } = await gateway.call("GET", "/v1/ledger?agent=traced");
  const [made, changed, archived] = body.data;
  expect(made.detail).toEqual({
    version: 1,
    fields: "instructions memory_scope owner",
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    owner: minimal.owner,
    memory_scope: minimal.memory_scope,
    tiers: "all",
    models: "*",
    models_denied: "none",
    tools: "*",
    approvals: "destructive",
    max_steps: 20,
  });
  expect(changed.detail).toMatchObject({
    version: 2,
    fields: "tier_policy tools",
    tiers: "1",
    tools: "none",
  });
  expect(changed.detail.hash).not.toBe(made.detail.hash);
  expect(archived.detail).toEqual({ version: 2, hash: changed.detail.hash });
  expect(JSON.stringify(body)).not.toContain("secret plan");
});

test("a secret given as a name is neither answered nor recorded", async () => {
  for (const secret of [gateway.admin, `gth_${"a".repeat(49)}`]) {
    const answers = [
      await gateway.call("GET", `/v1/agents/${secret}`),
      await gateway.call("POST", `/v1/agents/${secret}/stop`),
      await gateway.call("POST", "/v1/tasks", { body: { agent: secret, prompt: "x" } }),
      await gateway.call("POST", "/v1/tasks", { body: { agent: "minimal", prompt: "x", tools: [secret] } }),
      await gateway.call("POST", "/v1/tokens", { body: { name: "x", scopes: [secret] } }),
      await gateway.call("POST", "/v1/tokens", { body: { name: "x", [secret]: 1 } }),
    ];
    for (const { status, body } of answers) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(JSON.stringify(body)).not.toContain(secret);
    }
    const { body } = await gateway.call("GET", "/v1/ledger?order=desc&limit=50");
    expect(JSON.stringify(body)).not.toContain(secret);
  }
});

describe("omitted parts of a tier policy have their defaults", () => {
  const all = { tiers: [1, 2], models: { allow: ["*"], deny: [] } };
  test.each([
    [{}, all],
    [{ tiers: [1] }, { ...all, tiers: [1] }],
    [{ tiers: [] }, { ...all, tiers: [] }],
    [{ models: {} }, all],
    [{ models: { deny: ["x/*"] } }, { ...all, models: { allow: ["*"], deny: ["x/*"] } }],
    [{ models: { allow: [] } }, { ...all, models: { allow: [], deny: [] } }],
  ])("%j", async (given, expected) => {
    const name = `policy-${Bun.hash(JSON.stringify(given)).toString(36)}`;
    expect((await create({ name, ...minimal, tier_policy: given })).body.tier_policy).toEqual(expected);
  });
});

describe("a name is refused", () => {
  test.each([
    "",
    "-a",
    "_a",
    "A",
    "a b",
    "a.b",
    "a/b",
    "ä",
    "a\n",
    "\na",
    "a\u0000",
    "😀",
    "a".repeat(64),
    "../a",
    "a'--",
  ])("%j", async (name) => {
    expectRefused(await create({ name, ...minimal }), "/name");
  });
  test.each([
    ["a number", 1],
    ["null", null],
    ["a list", ["a"]],
  ])("that is %s", async (_, name) => {
    expectRefused(await create({ name, ...minimal }), "/name");
  });
  test.each(["a", "0", "a-b_c", "constructor", "__proto__".slice(2, 7), "a".repeat(63)])(
    "not: %j",
    async (name) => {
      expect((await create({ name, ...minimal })).status).toBe(201);
      expect((await read(name)).body.name).toBe(name);
    },
  );
});

describe("a memory scope is refused", () => {
  test.each([
    "",
    "/a",
    "a/",
    "a//b",
    "//",
    "A",
    "a/B",
    ".a",
    "-a",
    "_a",
    "a/.b",
    "..",
    "../a",
    "a/../b",
    "a b",
    "a\\b",
    "a*",
    "ä",
    "a\n",
    "a/\n",
    "%2e%2e",
    "a\u0000",
    Array.from({ length: 17 }, () => "a").join("/"),
  ])("%j", async (memory_scope) => {
    expectRefused(await create({ name: "scoped", owner: "x", memory_scope }), "/memory_scope");
    expectRefused(
      await create({ name: "scoped", owner: "x", memory_scope: [memory_scope] }),
      "/memory_scope",
    );
    expectRefused(await change("minimal", { memory_scope }), "/memory_scope");
  });
  test.each([
    ["null", null],
    ["a number", 1],
    ["no path at all", []],
    ["a path and a number", ["a", 1]],
    ["nested lists", [["a"]]],
  ])("that is %s", async (_, memory_scope) => {
    expectRefused(await create({ name: "scoped", owner: "x", memory_scope }), "/memory_scope");
  });
});

describe("a memory scope is read back as a list", () => {
  const deepest = Array.from({ length: 16 }, () => "a").join("/");
  test.each([
    ["support", ["support"]],
    ["/", ["/"]],
    ["legal/contracts", ["legal/contracts"]],
    ["0.1_2-3", ["0.1_2-3"]],
    ["a..b", ["a..b"]],
    [deepest, [deepest]],
    [
      ["b", "a"],
      ["b", "a"],
    ],
    [["a", "a"], ["a"]],
    [
      ["/", "a"],
      ["/", "a"],
    ],
  ])("%j", async (memory_scope, expected) => {
    const name = `scope-${Bun.hash(JSON.stringify(memory_scope)).toString(36)}`;
    expect((await create({ name, owner: "x", memory_scope })).body.memory_scope).toEqual(expected);
    expect((await read(name)).body.memory_scope).toEqual(expected);
  });
});

describe("other fields are refused", () => {
  const globs = Array.from({ length: 201 }, (_, index) => `t${index}`);
  const cases: readonly [field: string, value: unknown][] = [
    ["/owner", ""],
    ["/owner", "x".repeat(201)],
    ["/owner", null],
    ["/owner", 1],
    ["/description", 1],
    ["/instructions", "x".repeat(100_001)],
    ["/tier_policy", null],
    ["/tier_policy", [1]],
    ["/tier_policy/tiers", [0]],
    ["/tier_policy/tiers", [1.5]],
    ["/tier_policy/tiers", ["1"]],
    ["/tier_policy/tiers", [-1]],
    ["/tier_policy/tiers", [1, 1]],
    ["/tier_policy/models", []],
    ["/tier_policy/models/allow", "*"],
    ["/tier_policy/models/deny", [""]],
    ["/tools", "*"],
    ["/tools", null],
    ["/tools", globs],
    ["/tools/0", [1]],
    ["/approvals", "*"],
    ["/max_steps", 0],
    ["/max_steps", -1],
    ["/max_steps", 1.5],
    ["/max_steps", "20"],
    ["/max_steps", null],
    ["/max_steps", 1e300],
    ["/budget", null],
    ["/budget", 5],
    ["/budget/credits_per_day", { credits_per_day: -1 }],
    ["/budget/credits_per_day", { credits_per_day: "1" }],
    ["/budget/credits_per_day", { credits_per_day: 0.0000001 }],
    ["/budget/credits_per_day", { credits_per_day: 1e300 }],
  ];
  test.each(cases)("%s %j", async (path, value) => {
    const field = path.split("/")[1] ?? "";
    const nested = path.startsWith("/tier_policy/models/")
      ? { models: { [path.split("/")[3] ?? ""]: value } }
      : path.startsWith("/tier_policy/")
        ? { [path.split("/")[2] ?? ""]: value }
        : value;
    expectRefused(await create({ name: "other", ...minimal, [field]: nested }), path);
    expectRefused(await change("minimal", { [field]: nested }), path);
  });
  test("but an owner of 200 characters is accepted, whatever they are", async () => {
    for (const [name, owner] of Object.entries({ o1: "x".repeat(200), o2: "😀".repeat(200) })) {
      expect((await create({ name, ...minimal, owner })).body.owner).toBe(owner);
    }
  });
});

test.each([
  "gth_a1a1a1a1a1a1a1a1a1a1a1a1",
  "gths_a1a1a1a1a1a1a1a1a1a1a1a1",
  "gthl_a1a1a1a1a1a1a1a1a1a1a1a1",
  "my-gth_a1a1a1a1a1a1a1a1a1a1a1a1-1",
])("a name that the ledger would leave out as a secret is refused: %s", async (name) => {
  const answer = await create({ name, ...minimal });
  expectRefused(answer, "/name");
  expect(answer.body.errors[0].message).toContain("must not look like a token");
  expect((await read(name)).status).toBe(404);
});

test("the ledger names every agent whose name is accepted, even if it begins like a token", async () => {
  const name = "gth_short";
  expect((await create({ name, ...minimal })).status).toBe(201);
  const { body } = await gateway.call("GET", `/v1/ledger?agent=${name}&action=agent.create`);
  expect(body.data).toHaveLength(1);
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  for (const name of ["alpha", "beta"]) await gateway.agent(name);
});
afterAll(() => gateway.stop());

describe("a token grants no scope that it does not have", () => {
  test.each<[string, string[], string[], string | null]>([
    ["admin", ["tokens:write"], ["admin"], "admin"],
    ["another scope", ["tokens:write", "tasks:read"], ["tasks:read", "tasks:write"], "tasks:write"],
    ["to write, with only read", ["tokens:write", "agents:read"], ["agents:write"], "agents:write"],
    ["all tools, with only some", ["tokens:write", "tools:vault.*"], ["tools:*"], "tools:*"],
    ["a wider glob", ["tokens:write", "tools:vault.s*"], ["tools:vault.*"], "tools:vault.*"],
    ["tools, with none", ["tokens:write"], ["tools:time.now"], "tools:time.now"],
    ["itself", ["tokens:write"], ["tokens:write"], null],
    ["the same glob", ["tokens:write", "tools:vault.*"], ["tools:vault.*"], null],
    ["a narrower glob", ["tokens:write", "tools:vault.*"], ["tools:vault.s*"], null],
    ["one tool of a glob", ["tokens:write", "tools:*"], ["tools:time.now"], null],
    ["anything, with only admin", ["admin"], ["admin"], null],
  ])("%s", async (_, held, wanted, missing) => {
    const token = await gateway.token({ scopes: held });
    const issue = await gateway.call("POST", "/v1/tokens", { token, body: { name: "more", scopes: wanted } });
    const target = await gateway.call("POST", "/v1/tokens", { body: { name: "target", scopes: wanted } });
    const rotate = await gateway.call("POST", `/v1/tokens/${target.body.id}/rotate`, { token });
    if (missing === null) {
      expect([issue.status, rotate.status]).toEqual([201, 200]);
      return;
    }
    for (const answer of [issue, rotate]) {
      expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
      expect(answer.body.detail).toContain(missing);
    }
    const still = await gateway.call("GET", "/v1/agents", { token: target.body.secret });
    expect(still.status).not.toBe(401);
  });

  test("nor the default scopes of an agent's token", async () => {
    const token = await gateway.token({ scopes: ["tokens:write", "tasks:read"] });
    const answer = await gateway.call("POST", "/v1/tokens", { token, body: { name: "x", agent: "alpha" } });
    expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
  });
});

describe("a token that acts as an agent", () => {
  let token: string;
  let own: string;
  let foreign: string;
  beforeAll(async () => {
    token = await gateway.token({ agent: "alpha", scopes: ["tasks:read", "tasks:write", "tokens:write"] });
    own = await finishedTask(gateway, "alpha");
    foreign = await finishedTask(gateway, "beta");
  });

  test.each([
    ["another agent", "beta"],
    ["an agent that does not exist", "nobody"],
  ])("dispatches to no other agent: %s", async (_, agent) => {
    for (const path of ["/v1/tasks", "/v1/tasks?stream=true"]) {
      const answer = await gateway.call("POST", path, { token, body: { agent, prompt: "hi" } });
      expect([answer.status, answer.body.code]).toEqual([403, "agent_forbidden"]);
    }
  });

  test("dispatches to its own", async () => {
    const answer = await gateway.call("POST", "/v1/tasks", { token, body: { agent: "alpha", prompt: "hi" } });
    expect(answer.status).toBe(202);
  });

  test("reads, follows and cancels only the tasks of its own agent", async () => {
    for (const [method, tail] of [
      ["GET", ""],
      ["GET", "/events"],
      ["POST", "/cancel"],
    ]) {
      const refused = await gateway.call(method ?? "", `/v1/tasks/${foreign}${tail}`, { token });
      expect([refused.status, refused.body.code]).toEqual([404, "not_found"]);
      const answered = await gateway.call(method ?? "", `/v1/tasks/${own}${tail}`, { token });
      expect(answered.status).toBe(method === "GET" ? 200 : 409);
    }
    const list = await gateway.call("GET", "/v1/tasks?limit=200", { token });
    expect(new Set(list.body.data.map((task: { agent: string }) => task.agent))).toEqual(new Set(["alpha"]));
    const filtered = await gateway.call("GET", "/v1/tasks?agent=beta", { token });
    expect(filtered.body.data).toEqual([]);
  });

  test("neither stops nor resumes an agent, sets no limits, and lists only its own agent's tokens", async () => {
    const scopes = ["approvals:write", "settings:write", "tokens:write"];
    const mine = await gateway.token({ agent: "alpha", scopes, name: "mine" });
    const before = (await gateway.call("GET", "/v1/workspace")).body.limits;
    for (const [method, path, body] of [
      ["POST", "/v1/agents/alpha/stop", {}],
      ["POST", "/v1/agents/alpha/resume", {}],
      ["POST", "/v1/agents/beta/stop", {}],
      ["PATCH", "/v1/workspace", { limits: { requests_per_minute: 1 } }],
    ] as const) {
      const refused = await gateway.call(method, path, { token: mine, body });
      expect([refused.status, refused.body.code]).toEqual([403, "agent_forbidden"]);
    }
    expect((await gateway.call("GET", "/v1/workspace")).body.limits).toEqual(before);
    expect((await gateway.call("GET", "/v1/agents/alpha")).body.status).toBe("active");
    const { data } = (await gateway.call("GET", "/v1/tokens?limit=200", { token: mine })).body;
    expect(data[0].name).toBe("mine");
    expect(new Set(data.map((token: { agent: string }) => token.agent))).toEqual(new Set(["alpha"]));
  });

  test("manages only its own agent's tokens", async () => {
    const issue = (agent: string | undefined) =>
      gateway.call("POST", "/v1/tokens", { token, body: { name: "n", agent, scopes: ["tasks:read"] } });
    expect((await issue("beta")).body.code).toBe("agent_forbidden");
    expect((await issue(undefined)).body.code).toBe("agent_forbidden");
    expect((await issue("alpha")).status).toBe(201);

    const others = [
      await gateway.call("POST", "/v1/tokens", { body: { name: "n", scopes: ["tasks:read"] } }),
      await gateway.call("POST", "/v1/tokens", {
        body: { name: "n", agent: "beta", scopes: ["tasks:read"] },
      }),
    ];
    for (const { body } of others) {
      const rotate = await gateway.call("POST", `/v1/tokens/${body.id}/rotate`, { token });
      const revoke = await gateway.call("DELETE", `/v1/tokens/${body.id}`, { token });
      expect([rotate.body.code, revoke.body.code]).toEqual(["agent_forbidden", "agent_forbidden"]);
      expect((await gateway.call("GET", "/v1/tasks", { token: body.secret })).status).toBe(200);
    }
  });

  test("its scopes restrict the agent's tools, and the agent's tools restrict its scopes", async () => {
    await gateway.agent("toolless", { tools: [] });
    const cases: [agent: string, scopes: string[], expected: number][] = [
      ["alpha", ["tasks:write"], 403],
      ["alpha", ["tasks:write", "tools:vault.*"], 403],
      ["toolless", ["tasks:write", "tools:*"], 403],
      ["alpha", ["tasks:write", "tools:time.*"], 202],
    ];
    for (const [agent, scopes, expected] of cases) {
      const secret = await gateway.token({ agent, scopes });
      const body = { agent, prompt: "hi", tools: ["time.now"] };
      const answer = await gateway.call("POST", "/v1/tasks", { token: secret, body });
      expect([agent, scopes, answer.status]).toEqual([agent, scopes, expected]);
      if (expected === 403) expect(answer.body.code).toBe("tool_forbidden");
    }
  });

  test("ends with its agent, and stays invalid when the name is taken again", async () => {
    await gateway.agent("mortal");
    const secret = await gateway.token({ agent: "mortal" });
    expect((await gateway.call("GET", "/v1/tasks", { token: secret })).status).toBe(200);
    await gateway.call("DELETE", "/v1/agents/mortal");
    const dead = await gateway.call("GET", "/v1/tasks", { token: secret });
    expect([dead.status, dead.body.code]).toEqual([401, "invalid_token"]);
    await gateway.agent("mortal");
    expect((await gateway.call("GET", "/v1/tasks", { token: secret })).status).toBe(401);
  });
});

describe("an agent's token changes no agent, whatever its scopes", () => {
  const cases: [method: string, path: string, body: object][] = [
    ["POST", "/v1/agents", { name: "other", owner: "x", memory_scope: "/" }],
    ["PATCH", "/v1/agents/narrow", { memory_scope: "/" }],
    ["PATCH", "/v1/agents/narrow", { tier_policy: {} }],
    ["DELETE", "/v1/agents/narrow", {}],
  ];
  test.each(cases)("%s %s %p", async (method, path, body) => {
    await gateway.call("POST", "/v1/agents", {
      body: { name: "narrow", owner: "x", memory_scope: "support" },
    });
    const token = await gateway.token({ agent: "narrow", scopes: ["agents:write", "agents:read"] });
    const refused = await gateway.call(method, path, { token, body });
    expect([refused.status, refused.body.code]).toEqual([403, "agent_forbidden"]);
    const read = await gateway.call("GET", "/v1/agents/narrow", { token });
    expect(read.body).toMatchObject({ memory_scope: ["support"], version: 1 });
  });
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { crc32 } from "node:zlib";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";

const clock = new FakeClock();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ clock });
  await gateway.agent("agent");
});
afterAll(() => gateway.stop());

const issue = (body: object) => gateway.call("POST", "/v1/tokens", { body });

describe("issuing is refused for", () => {
  const scopes = ["tasks:read"];
  const cases: readonly [name: string, body: object, path: string][] = [
    ["no name", { scopes }, "/name"],
    ["an empty name", { name: "", scopes }, "/name"],
    ["a name of 201 characters", { name: "n".repeat(201), scopes }, "/name"],
    ["a name that is not text", { name: 1, scopes }, "/name"],
    ["no scopes without an agent", { name: "n" }, "/scopes"],
    ["an empty list of scopes", { name: "n", scopes: [] }, "/scopes"],
    ["scopes that are not a list", { name: "n", scopes: "tasks:read" }, "/scopes"],
    ["an invalid scope", { name: "n", scopes: ["tasks:read", "tasks:delete"] }, "/scopes/1"],
    ["a scope in another case", { name: "n", scopes: ["Tasks:Read"] }, "/scopes/0"],
    ["admin in another case", { name: "n", scopes: ["ADMIN"] }, "/scopes/0"],
    ["tools in another case", { name: "n", scopes: ["TOOLS:*"] }, "/scopes/0"],
    ["tools without a glob", { name: "n", scopes: ["tools:"] }, "/scopes/0"],
    ["tools with a space", { name: "n", scopes: ["tools:a b"] }, "/scopes/0"],
    ["a star for all", { name: "n", scopes: ["*"] }, "/scopes/0"],
    ["the name of an object's own property", { name: "n", scopes: ["__proto__"] }, "/scopes/0"],
    ["two scopes in one", { name: "n", scopes: ["tasks:read tasks:write"] }, "/scopes/0"],
    ["an expiry without a unit", { name: "n", scopes, expires_in: "90" }, "/expires_in"],
    ["an expiry in years", { name: "n", scopes, expires_in: "1y" }, "/expires_in"],
    ["a negative expiry", { name: "n", scopes, expires_in: "-1d" }, "/expires_in"],
    ["a fraction of an expiry", { name: "n", scopes, expires_in: "1.5d" }, "/expires_in"],
    ["an expiry that is a number", { name: "n", scopes, expires_in: 3600 }, "/expires_in"],
    [
      "an expiry past the end of the calendar",
      { name: "n", scopes, expires_in: "999999999w" },
      "/expires_in",
    ],
    ["an empty person", { name: "n", scopes, person: "" }, "/person"],
    ["an empty role", { name: "n", scopes, role: "" }, "/role"],
    ["an agent that is not text", { name: "n", agent: {} }, "/agent"],
  ];
  test.each(cases)("%s", async (_, body, path) => {
    const answer = await issue(body);
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    expect(answer.body.errors.map((error: { path: string }) => error.path)).toContain(path);
  });

  test("an agent that does not exist", async () => {
    const answer = await issue({ name: "n", agent: "nobody" });
    expect([answer.status, answer.body.code]).toEqual([404, "agent_not_found"]);
  });
});

test("issuing returns every field of the contract and the secret, with its Location", async () => {
  const answer = await issue({
    name: "CI",
    scopes: ["tasks:read", "tools:github.search_*", "tasks:read"],
    expires_in: "90d",
    person: "Ada Lovelace",
    role: "Operator",
  });
  const now = clock.now();
  const listed = (await gateway.call("GET", "/v1/tokens")).body.data;
  const admin = listed[listed.length - 1];
  expect(answer.status).toBe(201);
  const { id, secret, ...rest } = answer.body;
  expect(rest).toEqual({
    name: "CI",
    agent: null,
    scopes: ["tasks:read", "tools:github.search_*"],
    person: "Ada Lovelace",
    role: "Operator",
    expires_at: new Date(now + 90 * 86_400_000).toISOString(),
    created_by: `token:${admin.id}`,
    created_at: new Date(now).toISOString(),
    last_used_at: null,
  });
  expect(answer.headers.get("location")).toBe(`/v1/tokens/${id}`);
  expect(listed[0]).toEqual({ id, ...rest });
  expect(secret).toBeString();
});

test("a token with an agent gets the contract's scopes when none are named", async () => {
  const { body } = await issue({ name: "n", agent: "agent" });
  expect(body).toMatchObject({ agent: "agent", person: null, role: null, expires_at: null });
  expect(body.scopes).toEqual([
    "tasks:read",
    "tasks:write",
    "vault:read",
    "connectors:read",
    "models:call",
    "tools:*",
  ]);
});

test("every scope of the contract can be given", async () => {
  const scopes = [
    ..."agents:read agents:write tasks:read tasks:write vault:read vault:write".split(" "),
    ..."connectors:read connectors:write ledger:read approvals:write tokens:write settings:write".split(" "),
    ..."tools:vault.* tools:github.search_* tools:* admin".split(" "),
  ];
  const { status, body } = await issue({ name: "all", scopes });
  expect([status, body.scopes]).toEqual([201, scopes]);
});

test("a secret is gth_, 43 base62 characters and their CRC-32 in six more", async () => {
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const seen = new Set<string>();
  for (let index = 0; index < 20; index++) {
    const secret = await gateway.token({ scopes: ["tasks:read"] });
    const [, text = "", check = ""] = /^gth_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(secret) ?? [];
    let value = 0;
    for (const character of check) value = value * 62 + digits.indexOf(character);
    expect(value).toBe(crc32(Buffer.from(text)));
    seen.add(text);
  }
  expect(seen.size).toBe(20);
});

describe("anything but a token of the workspace answers 404", () => {
  test.each([
    "tok_0",
    "task_01m7xzhqw9enjb8typxj8ze7zz",
    "tok_01m7xzhqw9enjb8typxj8ze7zz",
    "%00",
    "tok_%27--",
  ])("%s", async (id) => {
    for (const [method, path] of [
      ["DELETE", `/v1/tokens/${id}`],
      ["POST", `/v1/tokens/${id}/rotate`],
    ] as const) {
      const answer = await gateway.call(method, path);
      expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    }
  });
});

test("a single token cannot be read: the path accepts only DELETE", async () => {
  const answer = await gateway.call("GET", "/v1/tokens/tok_0");
  expect([answer.status, answer.headers.get("allow")]).toEqual([405, "DELETE"]);
});

test("the entry of an issued token names all of its scopes, however long they are", async () => {
  const globs = Array.from({ length: 98 }, (_, at) => `tools:${String(at).padEnd(200, "x")}`);
  const scopes = [...globs, "tokens:write", "approvals:write"];
  expect((await issue({ name: "n", scopes })).status).toBe(201);
  const { body } = await gateway.call("GET", "/v1/ledger?action=token.issue&order=desc&limit=1");
  expect(body.data[0].detail.scopes).toBe(scopes.join(" "));
});

test("counting tokens reads none of their rows", () => {
  const sql = "SELECT COUNT(*) AS count FROM tokens WHERE workspace_id = 1 AND revoked_at IS NULL";
  const plan = ownConnection(gateway.dataDir).query(`EXPLAIN QUERY PLAN ${sql}`).all();
  expect(plan).toMatchObject([{ detail: expect.stringContaining("USING COVERING INDEX tokens_unrevoked") }]);
});

test("a workspace has at most 5,000 tokens that have not been revoked", async () => {
  const token = await gateway.workspace("crowd");
  const LIMIT = 5_000;
  const one = (index: number) =>
    gateway.call("POST", "/v1/tokens", { token, body: { name: `t${index}`, scopes: ["tasks:read"] } });
  const ids: string[] = [];
  for (let from = 1; from < LIMIT; from += 250) {
    const count = Math.min(250, LIMIT - from);
    for (const { status, body } of await Promise.all(
      Array.from({ length: count }, (_, at) => one(from + at)),
    )) {
      expect(status).toBe(201);
      ids.push(body.id);
    }
  }
  // The workspace's own token counts, too.
  expect(ids).toHaveLength(LIMIT - 1);
  const { status, body } = await one(LIMIT);
  expect([status, body.code]).toEqual([409, "token_limit"]);
  expect((await gateway.call("DELETE", `/v1/tokens/${ids[0]}`, { token })).status).toBe(204);
  expect((await one(LIMIT)).status).toBe(201);
});

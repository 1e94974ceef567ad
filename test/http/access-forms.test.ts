import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const FIELD = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("agent");
  await finishedTask(gateway, "agent");
  await gateway.token({ agent: "agent", expires_in: "1d" });
});
afterAll(() => gateway.stop());

/** Decodes the UUID of an identifier, with code of the test's own. */
function uuid(id: string): { version: number; variant: number; ms: number } {
  const text = id.slice(id.indexOf("_") + 1);
  let value = 0n;
  for (const character of text) value = value * 32n + BigInt(ALPHABET.indexOf(character));
  return {
    version: Number((value >> 76n) & 0xfn),
    variant: Number((value >> 62n) & 0x3n),
    ms: Number(value >> 80n),
  };
}

/** Every key and every string inside a value. */
function* everything(value: unknown): Generator<{ key: string; value: unknown }> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (!Array.isArray(value)) yield { key, value: item };
    yield* everything(item);
  }
}

describe("identifiers are a prefix and a UUIDv7 in 26 Crockford base32 characters", () => {
  test.each([
    ["task_", "/v1/tasks", (body: { data: { id: string }[] }) => body.data[0]?.id],
    ["tok_", "/v1/tokens", (body: { data: { id: string }[] }) => body.data[0]?.id],
    ["req_", "/v1/agents", null],
  ] as const)("%s", async (prefix, path, pick) => {
    const before = Date.now();
    const answer = await gateway.call("GET", path);
    const id = pick === null ? answer.headers.get("gatehouse-request-id") : pick(answer.body);
    expect(id).toMatch(new RegExp(`^${prefix}[0-7][0-9a-hjkmnp-tv-z]{25}$`));
    const { version, variant, ms } = uuid(id ?? "");
    expect([version, variant]).toEqual([7, 0b10]);
    expect(Math.abs(ms - before)).toBeLessThan(60_000);
  });

  test("they sort by time, even within a millisecond, and none repeats", async () => {
    const ids: string[] = [];
    for (let index = 0; index < 50; index++) {
      ids.push((await gateway.call("GET", "/livez")).headers.get("gatehouse-request-id") ?? "");
    }
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("times are RFC 3339 UTC with milliseconds, and fields snake_case", () => {
  test.each([
    "/v1/agents",
    "/v1/tasks",
    "/v1/tokens",
    "/v1/ledger?limit=200",
    "/v1/models",
    "/v1/tiers",
    "/v1/workspace",
  ])("%s", async (path) => {
    const { body } = await gateway.call("GET", path);
    let seen = 0;
    for (const { key, value } of everything(body)) {
      seen += 1;
      expect(key).toMatch(FIELD);
      if ((key.endsWith("_at") || key === "ts") && value !== null) expect(value).toMatch(TIME);
    }
    expect(seen).toBeGreaterThan(5);
  });
});

describe("an unknown field of a body is refused by its path", () => {
  const agent = { name: "x", owner: "x", memory_scope: "a" };
  const cases: readonly [method: string, path: string, body: unknown, refused: string][] = [
    ["POST", "/v1/agents", { ...agent, extra: 1 }, "/extra"],
    ["POST", "/v1/agents", { ...agent, Owner: "x" }, "/Owner"],
    ["POST", "/v1/agents", { ...agent, status: "stopped" }, "/status"],
    ["POST", "/v1/agents", { ...agent, version: 9 }, "/version"],
    ["POST", "/v1/agents", { ...agent, tier_policy: { tier: [1] } }, "/tier_policy/tier"],
    [
      "POST",
      "/v1/agents",
      { ...agent, tier_policy: { models: { permit: [] } } },
      "/tier_policy/models/permit",
    ],
    ["POST", "/v1/agents", { ...agent, budget: { credits_per_day: 1, per: "day" } }, "/budget/per"],
    ["POST", "/v1/agents", { ...agent, "a/b~c": 1 }, "/a~1b~0c"],
    ["POST", "/v1/agents", { ...agent, "": 1 }, "/"],
    ["PATCH", "/v1/agents/agent", { name: "other" }, "/name"],
    ["PATCH", "/v1/agents/agent", { created_at: null }, "/created_at"],
    ["POST", "/v1/agents/agent/stop", { reason: "x" }, "/reason"],
    ["POST", "/v1/agents/agent/resume", { reason: "x" }, "/reason"],
    ["POST", "/v1/tasks", { agent: "agent", prompt: "x", model: "x" }, "/model"],
    ["POST", "/v1/tasks?stream=true", { agent: "agent", prompt: "x", stream: true }, "/stream"],
    ["POST", "/v1/tokens", { name: "x", agent: "agent", secret: "x" }, "/secret"],
    ["POST", "/v1/tokens", { name: "x", agent: "agent", expires_at: null }, "/expires_at"],
    ["POST", "/v1/tokens/tok_0/rotate", { grace_ms: 1 }, "/grace_ms"],
    ["PATCH", "/v1/workspace", { name: "x" }, "/name"],
    ["PATCH", "/v1/workspace", { limits: { burst: 1 } }, "/limits/burst"],
    ["PATCH", "/v1/workspace", { budget: { credits: 1 } }, "/budget/credits"],
    ["PATCH", "/v1/workspace", { usage: {} }, "/usage"],
  ];
  test.each(cases)("%s %s %j", async (method, path, body, refused) => {
    const answer = await gateway.call(method, path, { body });
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    const error = answer.body.errors.find((each: { path: string }) => each.path === refused);
    expect(error).toEqual({ path: refused, message: "is not a known field" });
  });

  test("several are all named at once, including missing ones", async () => {
    const answer = await gateway.call("POST", "/v1/agents", { body: { owner: "", one: 1, two: 2 } });
    const paths = answer.body.errors.map((error: { path: string }) => error.path);
    expect(paths.sort()).toEqual(["/memory_scope", "/name", "/one", "/owner", "/two"]);
  });

  test("a body of ten thousand unknown fields gets a short answer", async () => {
    const body = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`f${index}`, index]));
    const answer = await gateway.call("POST", "/v1/agents", { body });
    expect(answer.status).toBe(422);
    expect(answer.body.errors.length).toBeLessThanOrEqual(32);
  });
});

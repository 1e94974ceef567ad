import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
const failures: string[] = [];
beforeAll(async () => {
  const fail = (message: string, fields?: object) => void failures.push(`${message} ${Bun.inspect(fields)}`);
  gateway = await startGateway({ log: { debug() {}, info() {}, warn() {}, error: fail } });
  await gateway.agent("agent");
});
afterAll(() => gateway.stop());

const HOSTILE = [
  "\0",
  "a\0b",
  "__proto__",
  "constructor",
  "toString",
  "' OR 1=1 --",
  "'; DROP TABLE ledger; --",
  "$1",
  "%s%n",
  "../../etc/passwd",
  "{{7*7}}",
  "$" + "{jndi:ldap://x}",
  "<script>alert(1)</script>",
  "\u202e\u2066RTL",
  "👩‍👩‍👧‍👦",
  "a\u0301".repeat(50),
  "\uffff\ufffe\ufeff",
  "\u2028\u2029",
  "\r\nSet-Cookie: x=1",
  "x".repeat(10_000),
];

describe("hostile text is stored and returned as text, or refused", () => {
  test.each(HOSTILE.map((value) => [value.slice(0, 30), value]))("%j", async (_, value) => {
    const name = `h-${Bun.hash(value).toString(36)}`;
    const agent = { name, owner: value.slice(0, 60), memory_scope: "a", description: value.slice(0, 60) };
    const made = await gateway.call("POST", "/v1/agents", { body: agent });
    expect(made.status).toBe(201);
    expect((await gateway.call("GET", `/v1/agents/${name}`)).body).toMatchObject({
      owner: agent.owner,
      description: agent.description,
    });

    const metadata: Record<string, string> = JSON.parse(`{${JSON.stringify(value.slice(0, 20))}:"v"}`);
    const sent = { agent: "agent", prompt: value, metadata };
    const task = await gateway.call("POST", "/v1/tasks", { body: sent });
    expect(task.status).toBe(202);
    const read = await gateway.call("GET", `/v1/tasks/${task.body.id}`);
    expect(read.body.prompt).toBe(value);
    expect(JSON.stringify(read.body.metadata)).toBe(JSON.stringify(metadata));

    const text = value.slice(0, 100);
    const token = await gateway.call("POST", "/v1/tokens", {
      body: { name: text, person: text, role: text, scopes: ["approvals:write"] },
    });
    expect(token.body).toMatchObject({ name: text, person: text, role: text });
    const stop = await gateway.call("POST", `/v1/agents/${name}/stop`, { token: token.body.secret });
    const entry = await gateway.call("GET", `/v1/ledger/${stop.headers.get("gatehouse-ledger")}`);
    expect(entry.body.oversight).toMatchObject({ person: text, role: text });

    const encoded = encodeURIComponent(value);
    for (const path of [`/v1/agents/${encoded}`, `/v1/tasks/${encoded}`, `/v1/ledger/${encoded}`]) {
      expect((await gateway.call("GET", path)).status).toBe(404);
    }
    for (const query of [`agent=${encoded}`, `actor=${encoded}`, `action=${encoded}`, `from=${encoded}`]) {
      expect([200, 422]).toContain((await gateway.call("GET", `/v1/ledger?${query}`)).status);
    }
  });

  test("metadata of any key is text, whatever characters the key has", async () => {
    for (const [metadata, status] of [
      [{ "a\nb": 5 }, 422],
      [{ "a\nb": { deep: 1 } }, 422],
      [{ "": "x" }, 422],
      [{ ["k".repeat(65)]: "x" }, 422],
      [{ k: "x".repeat(513) }, 422],
      [{ "a\nb": "x", ["k".repeat(64)]: "x".repeat(512) }, 202],
    ] as const) {
      const body = { agent: "agent", prompt: "x", metadata };
      expect([metadata, (await gateway.call("POST", "/v1/tasks", { body })).status]).toEqual([
        metadata,
        status,
      ]);
    }
  });
});

const PATHS = [
  "/v1/agents",
  "/v1/agents/agent",
  "/v1/agents/agent/stop",
  "/v1/agents/agent/resume",
  "/v1/tasks",
  "/v1/tasks/x",
  "/v1/tasks/x/events",
  "/v1/tasks/x/cancel",
  "/v1/tokens",
  "/v1/tokens/x",
  "/v1/tokens/x/rotate",
  "/v1/models",
  "/v1/models/x/y",
  "/v1/tiers",
  "/v1/workspace",
  "/v1/ledger",
  "/v1/ledger/1",
  "/v1/nothing",
];
const FIELDS = [
  "name owner memory_scope description instructions tier_policy tiers models allow deny tools approvals max_steps",
  "budget credits_per_day credits_per_month limits requests_per_minute enforcement agent prompt tier metadata",
  "scopes expires_in person role grace __proto__ constructor",
].flatMap((line) => line.split(" "));

const leaf = fc.oneof(
  fc.constantFrom<unknown>(
    ...HOSTILE,
    null,
    true,
    0,
    -0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    "1d",
    "*",
    "admin",
    "support",
  ),
  fc.string({ unit: "binary", maxLength: 40 }).map((text) => text.toWellFormed()),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const key = fc.oneof(fc.constantFrom(...FIELDS), fc.string({ maxLength: 8 }));
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 6 }).map((pairs) => Object.fromEntries(pairs)),
  ),
})).value;
const body = fc.oneof(
  { weight: 6, arbitrary: json.map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: fc.string({ maxLength: 60 }) },
  { weight: 1, arbitrary: fc.json() },
);
const query = fc.array(
  fc.tuple(
    fc.constantFrom(
      "limit",
      "cursor",
      "agent",
      "status",
      "after",
      "stream",
      "from",
      "to",
      "date",
      "tier",
      "order",
      "x",
    ),
    fc.oneof(
      fc.constantFrom("1", "-1", "true", "asc", "2026-02-30", "2026-01-01T00:00:00Z", ""),
      fc.string({ maxLength: 12 }),
    ),
  ),
  { maxLength: 3 },
);
const tail = fc.oneof(
  { weight: 4, arbitrary: fc.constant("") },
  { weight: 1, arbitrary: fc.constantFrom("/", "//", "/%00", "/%", "/%E0%A4%A", "/..", "?") },
);

test("no request of any shape causes a server error: each status is below 500, and a refusal is a problem", async () => {
  const request = fc.record({
    method: fc.constantFrom("GET", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"),
    path: fc.constantFrom(...PATHS),
    tail,
    query,
    body,
    type: fc.constantFrom("application/json", "application/json", "application/json", "text/plain", ""),
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, tail, query, body, type }) => {
      const search = new URLSearchParams(
        query.map(([name, value]): [string, string] => [name, value.toWellFormed()]),
      ).toString();
      const response = await fetch(`${gateway.url}${path}${tail}${search === "" ? "" : `?${search}`}`, {
        method,
        headers: {
          authorization: `Bearer ${gateway.admin}`,
          ...(type === "" ? {} : { "content-type": type }),
        },
        ...(method === "GET" ? {} : { body: body.toWellFormed() }),
      });
      const text = await response.text();
      expect(response.status).toBeLessThan(500);
      const requestId = response.headers.get("gatehouse-request-id");
      expect(requestId).toStartWith("req_");
      if (response.status < 400) return;
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect((JSON.parse(text) as { request_id: string }).request_id).toBe(requestId ?? "");
    }),
    { numRuns: 1_500 },
  );
  expect(failures).toEqual([]);
  expect((await gateway.call("GET", "/v1/tokens?limit=200")).status).toBe(200);
  expect((await gateway.call("GET", "/v1/agents?limit=200")).status).toBe(200);
}, 60_000);

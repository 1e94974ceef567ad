import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { type ContractRoute, prepare, ROUTES } from "../access/routes.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const REQUEST_ID = /^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const clock = new FakeClock();
let gateway: TestGateway;
let fill: (path: string) => string;

beforeAll(async () => {
  gateway = await startGateway({ clock });
  ({ fill } = await prepare(gateway, "agent"));
});
afterAll(() => gateway.stop());

const label = ({ method, path }: ContractRoute) => `${method} ${path}`;

describe("every route refuses a call without a token, before it looks at anything else", () => {
  test.each(ROUTES.map((route) => [label(route), route] as const))("%s", async (_, route) => {
    const answer = await gateway.call(route.method, fill(route.path), {
      token: null,
      ...(route.method === "GET" ? {} : { raw: "not json" }),
      headers: { "content-type": "text/plain" },
    });
    expect(answer.status).toBe(401);
    expect(answer.body.code).toBe("unauthenticated");
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(answer.headers.get("gatehouse-request-id")).toBe(answer.body.request_id);
  });
});

describe("an Authorization header that is not `Bearer <token>` is unauthenticated", () => {
  test.each([
    ["empty", ""],
    ["no scheme", "gth_abc"],
    ["a scheme alone", "Bearer"],
    ["a scheme and spaces", "Bearer   "],
    ["another scheme", "Basic dXNlcjpwYXNz"],
    ["two tokens", "Bearer one two"],
    ["a comma list", "Bearer one, Bearer two"],
    ["a quoted token", 'Bearer "one"'],
    ["a glued scheme", "Bearergth_abc"],
  ])("%s", async (_, authorization) => {
    const answer = await gateway.call("GET", "/v1/agents", { token: null, headers: { authorization } });
    expect([answer.status, answer.body.code]).toEqual([401, "unauthenticated"]);
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  });
});

test("unknown, misformed, expired, revoked and rotated secrets get one and the same answer", async () => {
  const issue = (more: object) =>
    gateway.call("POST", "/v1/tokens", { body: { name: "t", scopes: ["agents:read"], ...more } });
  const expired = (await issue({ expires_in: "1s" })).body.secret;
  const revoked = (await issue({})).body;
  const rotated = (await issue({})).body;
  clock.advance(1_000);
  await gateway.call("DELETE", `/v1/tokens/${revoked.id}`);
  await gateway.call("POST", `/v1/tokens/${rotated.id}/rotate`);
  const secrets = {
    unknown: createSecret(systemRandom),
    misformed: "gth_short",
    foreign: "sk-abcdef",
    expired,
    revoked: revoked.secret,
    rotated: rotated.secret,
  };
  const answers = new Set<string>();
  for (const token of Object.values(secrets)) {
    const answer = await gateway.call("GET", "/v1/agents", { token });
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    const { request_id, ...body } = answer.body;
    expect(request_id).toMatch(REQUEST_ID);
    answers.add(JSON.stringify(body));
  }
  expect(answers.size).toBe(1);
  expect([...answers][0]).toContain('"code":"invalid_token"');
});

test("the scheme is case-insensitive, and spaces around the token are ignored", async () => {
  for (const authorization of [
    `bearer ${gateway.admin}`,
    `BEARER ${gateway.admin}`,
    `Bearer   ${gateway.admin} `,
  ]) {
    const answer = await gateway.call("GET", "/v1/agents", { token: null, headers: { authorization } });
    expect(answer.status).toBe(200);
  }
});

describe("every response carries Gatehouse-Request-Id", () => {
  const cases: readonly [name: string, method: string, path: string, status: number, options?: object][] = [
    ["a success", "GET", "/v1/agents", 200],
    ["an answer without a body", "DELETE", "/v1/agents/gone-soon", 204],
    ["an unknown path", "GET", "/nothing", 404],
    ["the root", "GET", "/", 404],
    ["another method", "PUT", "/v1/agents", 405],
    ["OPTIONS", "OPTIONS", "/v1/agents", 405],
    ["no token", "GET", "/v1/agents", 401, { token: null }],
    ["no scope", "GET", "/operator/workspaces", 404],
    [
      "another media type",
      "POST",
      "/v1/agents",
      415,
      { raw: "a=b", headers: { "content-type": "text/plain" } },
    ],
    ["no JSON", "POST", "/v1/agents", 400, { raw: "{" }],
    ["a bad body", "POST", "/v1/agents", 422, { body: {} }],
    ["a conflict", "POST", "/v1/agents", 409, { body: { name: "steady", owner: "x", memory_scope: "/" } }],
    ["a stream", "POST", "/v1/tasks?stream=true", 200, { body: { agent: "steady", prompt: "hi" } }],
    ["liveness", "GET", "/livez", 200],
    ["readiness", "GET", "/readyz", 200],
    ["metrics", "GET", "/metrics", 200],
    [
      "metrics refused",
      "GET",
      "/metrics",
      401,
      { token: null, headers: { "x-forwarded-for": "203.0.113.9" } },
    ],
    ["the document", "GET", "/openapi.json", 200],
    ["its page", "GET", "/docs", 200],
    ["the page's script", "GET", "/docs/init.js", 200],
    ["a method of a probe", "POST", "/livez", 405],
  ];
  const rows = cases.map(([name, method, path, status, options = {}]) => ({
    name,
    method,
    path,
    status,
    options,
  }));
  test.each(rows)("$name", async ({ method, path, status, options }) => {
    if (path.endsWith("gone-soon")) await gateway.agent("gone-soon");
    const answer = await gateway.call(method, path, options);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("gatehouse-request-id")).toMatch(REQUEST_ID);
    if (status >= 400) {
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(answer.body.request_id).toBe(answer.headers.get("gatehouse-request-id"));
    }
  });
});

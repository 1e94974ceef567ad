/**
 * "Rights count when a change is committed or a call is sent, not when its request began." A request's head arrives
 * while its token is valid, and its body after the token has ended.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Prepared, prepare, ROUTES } from "../access/routes.ts";
import { OWN_PAGE, signIn } from "../access/session-support.ts";
import { connect, hello, request } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type LateAnswer, sendHead } from "../support/late-body.ts";
import { until } from "../tasks/support.ts";

const clock = new FakeClock();
let gateway: TestGateway;
let made: Prepared;
beforeAll(async () => {
  gateway = await startGateway({ clock });
  made = await prepare(gateway, "spare");
});
afterAll(() => gateway.stop());

interface Issued {
  readonly id: string;
  readonly secret: string;
}

async function issue(more: object = {}): Promise<Issued> {
  const body = { name: "late", scopes: ["admin"], ...more };
  return (await gateway.call("POST", "/v1/tokens", { body })).body as Issued;
}

/** Waits until the server has read the head, which it counts as a use of the token. */
async function wasSeen(id: string): Promise<void> {
  await until(async () => {
    const { data } = (await gateway.call("GET", "/v1/tokens?limit=200")).body;
    return data.find((token: { id: string }) => token.id === id)?.last_used_at !== null;
  });
}

function expectRefused(answer: LateAnswer): void {
  expect([answer.status, answer.body.code]).toEqual([401, "invalid_token"]);
  expect(answer.headers.get("www-authenticate")).toBe("Bearer");
}

/** The token's entries, as `outcome code`. */
async function entriesOf(id: string): Promise<string[]> {
  const { data } = (await gateway.call("GET", `/v1/ledger?actor=token:${id}&limit=200`)).body;
  return data.map((entry: { outcome: string; code: string }) => `${entry.outcome} ${entry.code}`);
}

const revoke = async ({ id }: Issued) => {
  await gateway.call("DELETE", `/v1/tokens/${id}`);
};

/** All routes that accept a body. */
const LATE = ROUTES.filter(
  ({ method, path }) => (method === "POST" || method === "PATCH") && !path.endsWith("/refresh"),
).map(({ method, path, body = {} }) => [`${method} ${path}`, method, path, body] as const);

describe("a body that arrives after its token was revoked is refused, and none of it is executed", () => {
  test.each(LATE)("%s", async (_, method, path, body) => {
    const token = await issue();
    const before = await gateway.call("GET", "/v1/workspace");
    const late = sendHead(gateway, { method, path: made.fill(path), token: token.secret, body });
    await wasSeen(token.id);
    await revoke(token);
    expectRefused(await late.finish());
    expect(await entriesOf(token.id)).toEqual(["denied invalid_token"]);
    expect((await gateway.call("GET", "/v1/workspace")).body.status).toBe(before.body.status);
  });

  test("POST /v1/tasks?stream=true", async () => {
    const token = await issue();
    const body = { agent: "steady", prompt: "hello" };
    const late = sendHead(gateway, { path: "/v1/tasks?stream=true", token: token.secret, body });
    await wasSeen(token.id);
    await revoke(token);
    expectRefused(await late.finish());
    expect(await entriesOf(token.id)).toEqual(["denied invalid_token"]);
  });

  test("an idempotency key is not used up by it", async () => {
    const token = await issue();
    const headers = { "idempotency-key": "late" };
    const body = { agent: "steady", prompt: "hello" };
    const late = sendHead(gateway, { path: "/v1/tasks", token: token.secret, headers, body });
    await wasSeen(token.id);
    await revoke(token);
    expectRefused(await late.finish());
    const again = await gateway.call("POST", "/v1/tasks", { headers, body });
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([202, null]);
  });
});

describe("so is one whose token has ended otherwise", () => {
  const late = async ({ id, secret }: Issued, end: () => Promise<unknown>) => {
    const body = { query: "refund" };
    const call = sendHead(gateway, { path: "/v1/vault/search", token: secret, body });
    await wasSeen(id);
    await end();
    return call.finish();
  };

  test("it was rotated without a grace period", async () => {
    const token = await issue();
    expectRefused(await late(token, () => gateway.call("POST", `/v1/tokens/${token.id}/rotate`)));
    expect(await entriesOf(token.id)).toEqual(["denied invalid_token"]);
  });

  test("the grace period of its secret has passed", async () => {
    const token = await issue();
    const end = async () => {
      await gateway.call("POST", `/v1/tokens/${token.id}/rotate`, { body: { grace: "10m" } });
      clock.setWall(clock.now() + 10 * 60_000);
    };
    expectRefused(await late(token, end));
  });

  test("it has expired", async () => {
    expectRefused(
      await late(await issue({ expires_in: "1h" }), async () => clock.setWall(clock.now() + 3_600_000)),
    );
  });

  test("its agent was archived", async () => {
    await gateway.agent("leaving");
    const token = await issue({ agent: "leaving", scopes: ["vault:read"] });
    expectRefused(await late(token, () => gateway.call("DELETE", "/v1/agents/leaving")));
  });

  test("a token rotated with a continuing grace period is served", async () => {
    const token = await issue();
    const body = { grace: "10m" };
    const answer = await late(token, () => gateway.call("POST", `/v1/tokens/${token.id}/rotate`, { body }));
    expect(answer.status).toBe(200);
  });

  test("a token is served although others were revoked", async () => {
    const [token, other] = [await issue(), await issue()];
    expect((await late(token, () => revoke(other))).status).toBe(200);
  });
});

describe("so is a browser's if its session has ended", () => {
  const ends: readonly [string, (session: string, token: Issued) => Promise<unknown>][] = [
    ["by somebody else", (session) => gateway.call("DELETE", `/v1/sessions/${session}`)],
    ["with its token", (_, token) => revoke(token)],
    ["with its token's secret", (_, { id }) => gateway.call("POST", `/v1/tokens/${id}/rotate`)],
    ["by its expiry", async () => clock.setWall(clock.now() + 12 * 3_600_000)],
  ];
  test.each(ends)("%s", async (_, end) => {
    const token = await issue();
    const browser = await signIn(gateway, token.secret);
    const late = sendHead(gateway, {
      path: "/v1/vault/search",
      token: null,
      headers: { ...OWN_PAGE, cookie: browser.cookie },
      body: { query: "refund" },
    });
    await until(async () => {
      const { data } = (await gateway.call("GET", "/v1/sessions?limit=200")).body;
      return data.find(({ id }: { id: string }) => id === browser.id)?.last_used_at !== null;
    });
    await end(browser.id, token);
    expectRefused(await late.finish());
  });
});

describe("over MCP, a message that arrives after its token was revoked", () => {
  test("begins no session", async () => {
    const token = await issue();
    const late = sendHead(gateway, { path: "/mcp", token: token.secret, body: hello() });
    await wasSeen(token.id);
    await revoke(token);
    expectRefused(await late.finish());
    expect(await entriesOf(token.id)).toEqual(["denied invalid_token"]);
  });

  test("calls no tool of a session", async () => {
    const token = await issue();
    const client = await connect(gateway, { token: token.secret });
    const before = await entriesOf(token.id);
    const headers = { "mcp-session-id": client.id, accept: "application/json, text/event-stream" };
    const body = request("tools/call", { name: "time__now", arguments: {} });
    const late = sendHead(gateway, { path: "/mcp", token: token.secret, headers, body });
    // The session is looked up only after the body, so nothing else shows that the head was read.
    clock.advance(1_000);
    const at = new Date(clock.now()).toISOString();
    const second = sendHead(gateway, { path: "/mcp", token: token.secret, headers, body });
    await until(async () => {
      const { data } = (await gateway.call("GET", "/v1/tokens?limit=200")).body;
      return data.find((each: { id: string }) => each.id === token.id)?.last_used_at === at;
    });
    await revoke(token);
    expectRefused(await late.finish());
    expectRefused(await second.finish());
    expect((await entriesOf(token.id)).slice(before.length)).toEqual([
      "denied invalid_token",
      "denied invalid_token",
    ]);
  });
});

test("the operator's own calls on this machine need no token", async () => {
  const headers = { "gatehouse-operator": "ada" };
  const late = sendHead(gateway, {
    path: "/v1/vault/search",
    token: gateway.gateway.operatorSecret,
    headers,
    body: { query: "refund" },
  });
  await revoke(await issue());
  expect((await late.finish()).status).toBe(200);
});

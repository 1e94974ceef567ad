/** A session has the rights that its token has at that moment, and ends with it. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecret, SESSION_PREFIX } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { createLog } from "../../src/base/log.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { databaseIn } from "../support/postgres/engine.ts";
import { type Browser, linkFor, OWN_PAGE, signIn } from "./session-support.ts";

const HOUR_MS = 3_600_000;
let clock: FakeClock;
let gateway: TestGateway;

beforeEach(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }" });
});
afterEach(() => gateway.stop());

interface Issued {
  readonly id: string;
  readonly secret: string;
}
const issue = async (request: object): Promise<Issued> =>
  (await gateway.call("POST", "/v1/tokens", { body: { name: "t", scopes: ["admin"], ...request } })).body;
const statusOf = async (browser: Browser) => (await browser.ask("GET", "/v1/session")).status;
const path = (issued: Issued, more = "") => `/v1/tokens/${issued.id}${more}`;

describe("a session ends", () => {
  /** Two sessions: one in use and therefore cached, one never used. */
  async function two(secret: string): Promise<readonly [Browser, Browser]> {
    const browsers = [await signIn(gateway, secret), await signIn(gateway, secret)] as const;
    expect(await statusOf(browsers[0])).toBe(200);
    return browsers;
  }
  const expectEnded = async (browsers: readonly Browser[]) => {
    for (const browser of browsers) {
      const { status, body, headers } = await browser.ask("GET", "/v1/session");
      expect([status, body.code, headers.get("www-authenticate")]).toEqual([401, "invalid_token", "Bearer"]);
    }
    expect(await openIds()).not.toContain(browsers[0]?.id);
  };
  const openIds = async (): Promise<string[]> =>
    (await gateway.call("GET", "/v1/sessions")).body.data.map(({ id }: { id: string }) => id);

  test("when its token is revoked", async () => {
    const token = await issue({});
    const browsers = await two(token.secret);
    expect((await gateway.call("DELETE", path(token))).status).toBe(204);
    await expectEnded(browsers);
  });

  test("when its token is rotated, but sessions of the new secret do not", async () => {
    const token = await issue({});
    const browsers = await two(token.secret);
    const { body } = await gateway.call("POST", path(token, "/rotate"));
    await expectEnded(browsers);
    expect(await statusOf(await signIn(gateway, body.secret))).toBe(200);
  });

  test("when the rotation's grace period ends, even if it signed in during that period", async () => {
    const token = await issue({});
    const before = await two(token.secret);
    const { body } = await gateway.call("POST", path(token, "/rotate"), { body: { grace: "10m" } });
    const during = await signIn(gateway, token.secret);
    const after = await signIn(gateway, body.secret);
    clock.advance(10 * 60_000 - 1);
    for (const browser of [...before, during]) expect(await statusOf(browser)).toBe(200);
    clock.advance(1);
    await expectEnded([...before, during]);
    expect(await statusOf(after)).toBe(200);
  });

  test("when its agent is archived, and stays ended when another gets the name", async () => {
    await gateway.agent("helper");
    const token = await issue({ agent: "helper" });
    const browsers = await two(token.secret);
    await gateway.call("DELETE", "/v1/agents/helper");
    await expectEnded(browsers);
    await gateway.agent("helper");
    await expectEnded(browsers);
  });

  test("when its token expires", async () => {
    const token = await issue({ expires_in: "90s" });
    const browsers = await two(token.secret);
    clock.advance(89_999);
    expect(await statusOf(browsers[0])).toBe(200);
    clock.advance(1);
    await expectEnded(browsers);
  });

  test("after twelve hours, however much it is used", async () => {
    const browsers = await two(gateway.admin);
    for (let hour = 1; hour < 12; hour++) {
      clock.suspend(HOUR_MS);
      expect(await statusOf(browsers[0])).toBe(200);
    }
    clock.suspend(HOUR_MS - 1);
    expect(await statusOf(browsers[1])).toBe(200);
    clock.advance(1);
    await expectEnded(browsers);
  });

  test("when it is signed out or somebody else ends it, and no other session ends with it", async () => {
    const [first, second] = await two(gateway.admin);
    const third = await signIn(gateway);
    expect((await first.ask("DELETE", "/v1/session")).status).toBe(204);
    await expectEnded([first]);
    expect((await third.ask("DELETE", `/v1/sessions/${second.id}`)).status).toBe(204);
    await expectEnded([second]);
    expect(await statusOf(third)).toBe(200);
  });

  test("as the oldest of more than a hundred sessions of its token; other tokens keep theirs", async () => {
    const other = await signIn(gateway, (await issue({})).secret);
    const [oldest, next] = await two(gateway.admin);
    for (let count = 2; count < 101; count++) await signIn(gateway);
    await expectEnded([oldest]);
    for (const browser of [next, other]) expect(await statusOf(browser)).toBe(200);
  });

  test("and its row is deleted once it has expired", async () => {
    await signIn(gateway);
    await signIn(gateway, (await issue({ expires_in: "2h" })).secret);
    const rows = async () => {
      const shared = databaseIn(gateway.dataDir);
      if (shared) return (await shared.query("SELECT id FROM sessions")).length;
      const database = new Database(join(gateway.dataDir, "gatehouse.db"), { readonly: true });
      const found = database.query("SELECT id FROM sessions").all().length;
      database.close();
      return found;
    };
    expect(await rows()).toBe(2);
    clock.advance(2 * HOUR_MS);
    while ((await rows()) > 1) await gateway.call("GET", "/v1/agents");
    expect(await rows()).toBe(1);
  });
});

test("it lasts as long as console.session_hours says", async () => {
  const other = await startGateway({ clock, yaml: "console: { session_hours: 1 }" });
  const browser = await signIn(other);
  clock.advance(HOUR_MS - 1);
  expect(await statusOf(browser)).toBe(200);
  clock.advance(1);
  expect(await statusOf(browser)).toBe(401);
  await other.stop();
});

test("it has the rights of its token, and no more", async () => {
  await gateway.agent("helper");
  await gateway.agent("other");
  const token = await issue({
    agent: "helper",
    scopes: ["tasks:read", "tokens:write"],
    person: "Ada",
    role: "clerk",
  });
  const browser = await signIn(gateway, token.secret);
  expect((await browser.ask("GET", "/v1/session")).body).toEqual({
    workspace: "default",
    workspace_status: "active",
    actor: `token:${token.id}`,
    token: { id: token.id, name: "t" },
    agent: "helper",
    scopes: ["tasks:read", "tokens:write"],
    person: "Ada",
    role: "clerk",
    session: { id: browser.id, expires_at: new Date(clock.now() + 12 * HOUR_MS).toISOString() },
  });
  const refusal = async (method: string, to: string, body?: object) =>
    (await browser.ask(method, to, { body })).body?.code;
  expect(await refusal("GET", "/v1/agents")).toBe("scope_missing");
  expect(await refusal("POST", "/v1/tasks", { agent: "helper", prompt: "hi" })).toBe("scope_missing");
  expect(await refusal("POST", "/v1/tokens", { name: "n", agent: "helper", scopes: ["admin"] })).toBe(
    "scope_missing",
  );
  expect(await refusal("POST", "/v1/tokens", { name: "n", agent: "other" })).toBe("agent_forbidden");
  // It neither sees nor ends sessions of other agents.
  const admin = await signIn(gateway);
  const { data } = (await browser.ask("GET", "/v1/sessions")).body;
  expect(data.map(({ id }: { id: string }) => id)).toEqual([browser.id]);
  expect(await refusal("DELETE", `/v1/sessions/${admin.id}`)).toBe("agent_forbidden");
  expect(await statusOf(admin)).toBe(200);
  expect(await refusal("POST", "/operator/console-links")).toBe("not_found");
});

test("another workspace's sessions can be neither listed nor ended", async () => {
  const secret = await gateway.workspace("other");
  const theirs = await signIn(gateway, secret);
  const ours = await signIn(gateway);
  const ids = async (token: string): Promise<string[]> =>
    (await gateway.call("GET", "/v1/sessions", { token })).body.data.map(({ id }: { id: string }) => id);
  expect([await ids(gateway.admin), await ids(secret)]).toEqual([[ours.id], [theirs.id]]);
  const refused = await ours.ask("DELETE", `/v1/sessions/${theirs.id}`);
  expect([refused.status, refused.body.code]).toEqual([404, "not_found"]);
  expect((await theirs.ask("GET", "/v1/session")).body.workspace).toBe("other");
});

test("it is listed with its browser's User-Agent, shortened and without secrets, newest first", async () => {
  const stolen = createSecret(systemRandom);
  const agents = ["Mozilla/5.0 (X11)", `curl ${stolen} ${"x".repeat(5_000)}`, ""];
  for (const agent of agents) {
    const headers = { ...OWN_PAGE, "user-agent": agent };
    expect((await gateway.call("POST", "/v1/session", { headers })).status).toBe(201);
    clock.advance(1_000);
  }
  const browser = await signIn(gateway);
  const { body } = await browser.ask("GET", "/v1/sessions");
  expect(body.next_cursor).toBeNull();
  const [own, unnamed, long, first] = body.data;
  expect([own.current, unnamed.current, long.current]).toEqual([true, false, false]);
  expect(own.last_used_at).toBe(new Date(clock.now()).toISOString());
  expect(unnamed).toMatchObject({ user_agent: null, last_used_at: null, name: "admin", person: null });
  expect(long.user_agent).toStartWith("curl gth_[redacted] xxx");
  expect(long.user_agent).toHaveLength(200);
  expect(first).toMatchObject({
    user_agent: "Mozilla/5.0 (X11)",
    created_at: new Date(clock.now() - 3_000).toISOString(),
    expires_at: new Date(clock.now() - 3_000 + 12 * HOUR_MS).toISOString(),
  });
  const page = await browser.ask("GET", "/v1/sessions?limit=2");
  const rest = await browser.ask("GET", `/v1/sessions?limit=2&cursor=${page.body.next_cursor}`);
  expect([...page.body.data, ...rest.body.data].map(({ id }: { id: string }) => id)).toEqual(
    body.data.map(({ id }: { id: string }) => id),
  );
});

test("its calls count as its token's, in the ledger and as the token's last use", async () => {
  const token = await issue({ person: "Ada" });
  const browser = await signIn(gateway, token.secret);
  clock.advance(60_000);
  const made = await browser.ask("POST", "/v1/agents", {
    body: { name: "made", owner: "ada", memory_scope: "/" },
  });
  expect(made.status).toBe(201);
  const entry = await gateway.call("GET", `/v1/ledger/${made.headers.get("gatehouse-ledger")}`);
  expect(entry.body).toMatchObject({ action: "agent.create", actor: `token:${token.id}`, channel: "rest" });
  const { body } = await gateway.call("GET", "/v1/tokens");
  const listed = body.data.find(({ id }: { id: string }) => id === token.id);
  expect(listed.last_used_at).toBe(new Date(clock.now()).toISOString());
});

test("it survives a restart, its secret is stored nowhere, and no link in memory survives a restart", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-sessions-"));
  const lines: string[] = [];
  const log = createLog("debug", clock, (line) => lines.push(line));
  const first = await startGateway({ dataDir, clock, log });
  const browser = await signIn(first);
  clock.advance(1_000);
  expect(await statusOf(browser)).toBe(200);
  const secret = browser.cookie.slice(browser.cookie.indexOf("=") + 1);
  expect(secret).toStartWith(SESSION_PREFIX);
  const link = await linkFor(first);
  const answers = [
    await browser.ask("GET", `/v1/agents/${secret}`),
    await browser.ask("POST", "/v1/agents", { body: { [secret]: link } }),
    await browser.ask("GET", "/v1/sessions"),
    await browser.ask("GET", "/v1/ledger?limit=200"),
  ];
  for (const { body } of answers) expect(JSON.stringify(body)).not.toMatch(/gth[sl]_\w{10}/);
  await first.gateway.stop();
  for (const name of readdirSync(dataDir)) {
    const bytes = readFileSync(join(dataDir, name));
    for (const each of [secret, link]) expect([name, bytes.includes(each)]).toEqual([name, false]);
  }
  expect(lines.join("")).not.toMatch(/gth[sl]_\w{10}/);
  const again = await startGateway({ dataDir, clock });
  const port = new URL(again.url).port;
  const headers = { ...OWN_PAGE, cookie: `gatehouse_session_${port}=${secret}` };
  const asked = await again.call("GET", "/v1/session", { token: null, headers });
  expect([asked.status, asked.body.session.id]).toEqual([200, browser.id]);
  // Links in a store that nodes share are valid on all of them.
  const status = databaseIn(dataDir) ? 201 : 401;
  expect((await again.call("POST", "/v1/session", { token: link })).status).toBe(status);
  const listed = (await again.call("GET", "/v1/sessions")).body.data.at(-1);
  expect(listed.last_used_at).not.toBeNull();
  await again.stop();
  rmSync(dataDir, { recursive: true });
});

/** Signing in and out: where each credential is accepted, and the cookie that results. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createSecret, LINK_PREFIX, SESSION_PREFIX } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { type Browser, cookieOf, linkFor, OWN_PAGE, signIn } from "../access/session-support.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const HALF_HOUR_MS = 30 * 60_000;
const clock = new FakeClock();
let gateway: TestGateway;
let browser: Browser;
let secret: string;
let port: string;

beforeAll(async () => {
  gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }" });
  browser = await signIn(gateway);
  secret = browser.cookie.slice(browser.cookie.indexOf("=") + 1);
  port = new URL(gateway.url).port;
});
afterAll(() => gateway.stop());

const ask = (headers: Record<string, string>, method = "GET", path = "/v1/session") =>
  gateway.call(method, path, { token: null, headers: { ...OWN_PAGE, ...headers } });

describe("a cookie that is not a session's is ignored", () => {
  test.each([
    ["none", ""],
    ["another name", "session=SECRET"],
    ["the name without the port", "gatehouse_session=SECRET"],
    ["another port's", "gatehouse_session_1=SECRET"],
    ["the name in other letters", "Gatehouse_Session_PORT=SECRET"],
    ["the name for HTTPS", "__Host-gatehouse_session_PORT=SECRET"],
    ["no value", "gatehouse_session_PORT="],
    ["no equals sign", "gatehouse_session_PORT"],
    ["a value in quotes", 'gatehouse_session_PORT="SECRET"'],
    ["one character short", "gatehouse_session_PORT=SHORT"],
    ["more characters after it", "gatehouse_session_PORT=SECRET0"],
    ["a token's secret", "gatehouse_session_PORT=TOKEN"],
    ["two different ones", "gatehouse_session_PORT=SECRET; gatehouse_session_PORT=OTHER"],
    ["two different ones, in the other order", "gatehouse_session_PORT=OTHER; gatehouse_session_PORT=SECRET"],
  ])("%s", async (_, form) => {
    const cookie = form
      .replaceAll("PORT", port)
      .replace("SECRET", secret)
      .replace("SHORT", secret.slice(0, -1))
      .replace("TOKEN", gateway.admin)
      .replace("OTHER", createSecret(systemRandom, SESSION_PREFIX));
    const answer = await ask({ cookie });
    expect([answer.status, answer.body.code]).toEqual([401, "unauthenticated"]);
  });

  test("an unknown secret is treated like one that has ended", async () => {
    const unknown = createSecret(systemRandom, SESSION_PREFIX);
    const answer = await ask({ cookie: `gatehouse_session_${port}=${unknown}` });
    expect([answer.status, answer.body.code]).toEqual([401, "invalid_token"]);
  });

  test("the right one is found among others", async () => {
    const cookie = `a=b; gatehouse_session_${port}=${secret} ;gatehouse_session_1=x; c`;
    expect((await ask({ cookie })).status).toBe(200);
  });
});

describe("an Authorization header takes precedence over the cookie", () => {
  test.each([
    ["", "unauthenticated"],
    ["Basic dXNlcjpwYXNz", "unauthenticated"],
    ["Bearer", "unauthenticated"],
    ["Bearer a b", "unauthenticated"],
    ["Bearer gth_unknown", "invalid_token"],
    ["Bearer SESSION", "invalid_token"],
  ])("%p is refused next to a valid one", async (authorization, code) => {
    const header = authorization.replace("SESSION", secret);
    for (const method of ["GET", "DELETE"]) {
      const answer = await ask({ authorization: header, cookie: browser.cookie }, method);
      expect([answer.status, answer.body.code]).toEqual([401, code]);
    }
    expect((await browser.ask("GET", "/v1/session")).status).toBe(200);
  });

  test("a token determines the caller, and signing out with it leaves the session unchanged", async () => {
    const token = await gateway.token({ name: "reader", scopes: ["tasks:read"] });
    const headers = { authorization: `Bearer ${token}`, cookie: browser.cookie };
    const answer = await ask(headers);
    expect(answer.body).toMatchObject({ token: { name: "reader" }, scopes: ["tasks:read"], session: null });
    expect((await ask(headers, "DELETE")).status).toBe(204);
    expect((await browser.ask("GET", "/v1/session")).status).toBe(200);
  });

  test("the operator's headers have no effect with a cookie", async () => {
    const headers = { "gatehouse-operator": "root", "gatehouse-workspace": "other", cookie: browser.cookie };
    expect((await ask(headers)).body).toMatchObject({ workspace: "default", token: { name: "admin" } });
    expect((await ask(headers, "GET", "/operator/workspaces")).status).toBe(404);
    expect((await ask(headers, "POST", "/operator/console-links")).status).toBe(404);
  });
});

describe("cookies are ignored", () => {
  test.each(["/mcp", "/mcp/sse"])("at %s", async (path) => {
    for (const method of ["GET", "POST", "DELETE"]) {
      const answer = await ask(
        { cookie: browser.cookie, accept: "application/json, text/event-stream" },
        method,
        path,
      );
      expect([answer.status, answer.body.code]).toEqual([401, "unauthenticated"]);
    }
  });

  test("for metrics from elsewhere", async () => {
    const answer = await ask({ cookie: browser.cookie, "x-forwarded-for": "203.0.113.9" }, "GET", "/metrics");
    expect([answer.status, answer.body.code]).toEqual([401, "unauthenticated"]);
  });

  test("for signing in: a session cannot create another", async () => {
    const answer = await browser.ask("POST", "/v1/session");
    expect([answer.status, answer.body.code]).toEqual([401, "unauthenticated"]);
  });
});

describe("signing in", () => {
  test("is refused for the operator, who has no token", async () => {
    const answer = await gateway.call("POST", "/v1/session", {
      token: gateway.gateway.operatorSecret,
      headers: { "gatehouse-operator": "ada" },
    });
    expect([answer.status, answer.body.code]).toEqual([401, "invalid_token"]);
  });

  test("accepts no fields", async () => {
    const answer = await gateway.call("POST", "/v1/session", { body: { hours: 1_000 } });
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
  });

  test("returns the caller, with a cookie that no script can read and no other site can send", async () => {
    const answer = await gateway.call("POST", "/v1/session", { headers: OWN_PAGE });
    expect(answer.body).toMatchObject({ workspace: "default", token: { name: "admin" }, scopes: ["admin"] });
    expect(answer.headers.get("set-cookie")).toMatch(
      new RegExp(
        `^gatehouse_session_${port}=gths_[0-9A-Za-z]{49}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$`,
      ),
    );
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(JSON.stringify(answer.body)).not.toContain("gths_");
    const entry = await gateway.call("GET", `/v1/ledger/${answer.headers.get("gatehouse-ledger")}`);
    expect(entry.body).toMatchObject({
      action: "session.create",
      outcome: "succeeded",
      detail: { session: answer.body.session.id, by: "token", expires_at: answer.body.session.expires_at },
    });
    expect(Object.keys(entry.body.detail)).not.toContain("link_by");
  });

  test("works while the server drains, as other writes do", async () => {
    const other = await startGateway();
    await other.gateway.drain();
    const signedIn = await signIn(other);
    expect((await signedIn.ask("DELETE", "/v1/session")).status).toBe(204);
    await other.stop();
  });

  test.each([
    ["a proxy that reports it", { "x-forwarded-proto": "https" }, "443", "__Host-gatehouse_session"],
    ["another port of that proxy", { "x-forwarded-proto": "https" }, "8443", "__Host-gatehouse_session_8443"],
    ["several proxies", { "x-forwarded-proto": "HTTPS, http" }, "443", "__Host-gatehouse_session"],
  ])("over HTTPS sets a cookie only for HTTPS: %s", async (_, forwarded, at, name) => {
    const host = at === "443" ? "gate.example.org" : `gate.example.org:${at}`;
    const headers = { ...OWN_PAGE, ...forwarded, host };
    const answer = await gateway.call("POST", "/v1/session", { headers });
    const set = answer.headers.get("set-cookie") ?? "";
    expect(set).toStartWith(`${name}=gths_`);
    expect(set).toEndWith("; HttpOnly; SameSite=Strict; Secure");
    const cookie = cookieOf(answer);
    const again = (more: Record<string, string>) =>
      gateway.call("GET", "/v1/session", { token: null, headers: { ...headers, cookie, ...more } });
    expect((await again({})).status).toBe(200);
    expect((await again({ "x-forwarded-proto": "http" })).status).toBe(401);
  });

  test("signing out clears the cookie under its own name, and may be repeated", async () => {
    const signedIn = await signIn(gateway);
    const out = await signedIn.ask("DELETE", "/v1/session");
    expect([out.status, out.headers.get("set-cookie")]).toEqual([
      204,
      `gatehouse_session_${port}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`,
    ]);
    const entry = await gateway.call("GET", `/v1/ledger/${out.headers.get("gatehouse-ledger")}`);
    expect(entry.body).toMatchObject({ action: "session.delete", detail: { session: signedIn.id } });
    const again = await signedIn.ask("DELETE", "/v1/session");
    expect([again.status, again.headers.get("set-cookie")]).toEqual([401, out.headers.get("set-cookie")]);
    const both = await signIn(gateway);
    const answers = await Promise.all([1, 2].map(() => both.ask("DELETE", "/v1/session")));
    for (const { status } of answers) expect([204, 401]).toContain(status);
    expect((await both.ask("GET", "/v1/session")).status).toBe(401);
  });
});

describe("a one-time link", () => {
  const redeem = (link: string) => gateway.call("POST", "/v1/session", { token: link, headers: OWN_PAGE });
  const refusal = async (answer: ReturnType<typeof redeem>) => {
    const { status, body, headers } = await answer;
    return [status, body.code, headers.get("www-authenticate"), headers.has("set-cookie")];
  };
  const REFUSED = [401, "invalid_token", "Bearer", false];

  test("is refused if unknown or truncated", async () => {
    expect(await refusal(redeem(createSecret(systemRandom, LINK_PREFIX)))).toEqual(REFUSED);
    expect(await refusal(redeem((await linkFor(gateway)).slice(0, -1)))).toEqual(REFUSED);
  });

  test("is refused after thirty minutes", async () => {
    const link = await linkFor(gateway);
    const young = await linkFor(gateway);
    clock.advance(HALF_HOUR_MS - 1);
    expect((await redeem(young)).status).toBe(201);
    clock.advance(1);
    expect(await refusal(redeem(link))).toEqual(REFUSED);
  });

  test("is valid for nothing else, and still valid after such attempts", async () => {
    const link = await linkFor(gateway);
    for (const [method, path] of [
      ["GET", "/v1/session"],
      ["DELETE", "/v1/session"],
      ["GET", "/v1/agents"],
      ["POST", "/v1/tokens"],
      ["POST", "/mcp"],
    ] as const) {
      // Signing out clears the cookie, whatever the answer.
      const isCleared = method === "DELETE";
      expect(await refusal(gateway.call(method, path, { token: link }))).toEqual([
        ...REFUSED.slice(0, 3),
        isCleared,
      ]);
    }
    const cookie = `gatehouse_session_${port}=${link}`;
    expect((await ask({ cookie })).body.code).toBe("unauthenticated");
    expect((await redeem(link)).status).toBe(201);
  });

  test("signs in once: one of ten simultaneous attempts", async () => {
    const link = await linkFor(gateway);
    const answers = await Promise.all(Array.from({ length: 10 }, () => redeem(link)));
    expect(answers.map(({ status }) => status).sort()).toEqual([
      201,
      ...Array.from({ length: 9 }, () => 401),
    ]);
    expect(await refusal(redeem(link))).toEqual(REFUSED);
    const [made] = answers.filter(({ status }) => status === 201);
    const entry = await gateway.call("GET", `/v1/ledger/${made?.headers.get("gatehouse-ledger")}`);
    expect(entry.body).toMatchObject({ action: "session.create", detail: { by: "link" } });
  });

  test("is refused once its token's secret is replaced, but valid during a grace period", async () => {
    const operator = { "gatehouse-operator": "ada", "gatehouse-workspace": "turning" };
    const asked = { token: gateway.gateway.operatorSecret, headers: operator };
    await gateway.workspace("turning");
    const { data } = (await gateway.call("GET", "/v1/tokens", asked)).body;
    const rotate = async (body: object) =>
      expect((await gateway.call("POST", `/v1/tokens/${data[0].id}/rotate`, { ...asked, body })).status).toBe(
        200,
      );
    const link = await linkFor(gateway, "turning");
    await rotate({});
    expect(await refusal(redeem(link))).toEqual(REFUSED);
    const early = await linkFor(gateway, "turning");
    const late = await linkFor(gateway, "turning");
    await rotate({ grace: "10m" });
    const { status, body } = await redeem(early);
    const until = clock.now() + 10 * 60_000;
    expect([status, body.session.expires_at]).toEqual([201, new Date(until).toISOString()]);
    clock.advance(10 * 60_000);
    expect(await refusal(redeem(late))).toEqual(REFUSED);
    expect((await redeem(await linkFor(gateway, "turning"))).status).toBe(201);
  });

  test("is not created for a token that names a person, because decisions would carry that name", async () => {
    const secret = await gateway.workspace("people");
    const operator = { "gatehouse-operator": "bob", "gatehouse-workspace": "people" };
    const asked = { token: gateway.gateway.operatorSecret, headers: operator };
    const { data } = (await gateway.call("GET", "/v1/tokens", asked)).body;
    const person = { name: "ada's", scopes: ["admin"], person: "Ada" };
    await gateway.call("POST", "/v1/tokens", { token: secret, body: person });
    const { body } = await redeem(await linkFor(gateway, "people"));
    expect(body).toMatchObject({ token: { id: data[0].id }, person: null });
    await gateway.call("DELETE", `/v1/tokens/${data[0].id}`, asked);
    const none = await gateway.call("POST", "/operator/console-links", asked);
    expect([none.status, none.body.code]).toEqual([404, "not_found"]);
    expect(none.body.detail).toContain("must not name a person");
    expect(none.body.detail).toContain(
      "gatehouse token create --name admin --scope admin --workspace people",
    );
  });

  test("is refused once its token is revoked", async () => {
    await gateway.workspace("brief");
    const link = await linkFor(gateway, "brief");
    const operator = { "gatehouse-operator": "ada", "gatehouse-workspace": "brief" };
    const token = gateway.gateway.operatorSecret;
    const { body } = await gateway.call("GET", "/v1/tokens", { token, headers: operator });
    await gateway.call("DELETE", `/v1/tokens/${body.data[0].id}`, { token, headers: operator });
    expect(await refusal(redeem(link))).toEqual(REFUSED);
    const none = await gateway.call("POST", "/operator/console-links", { token, headers: operator });
    expect([none.status, none.body.code]).toEqual([404, "not_found"]);
    expect(none.body.detail).toContain("gatehouse token create --name admin --scope admin --workspace brief");
  });

  test("is created for its workspace's newest valid admin token that does not act as an agent", async () => {
    await gateway.agent("helper");
    const other = await gateway.workspace("elsewhere");
    const issue = (name: string, more: object) =>
      gateway.call("POST", "/v1/tokens", { token: other, body: { name, scopes: ["admin"], ...more } });
    await issue("newest", {});
    await issue("brief", { expires_in: "1s" });
    await issue("narrow", { scopes: ["tokens:write", "tools:admin"] });
    await gateway.call("POST", "/v1/agents", {
      token: other,
      body: { name: "helper", owner: "x", memory_scope: "/" },
    });
    await issue("agent's", { agent: "helper" });
    clock.advance(1_000);
    const { body } = await redeem(await linkFor(gateway, "elsewhere"));
    expect(body).toMatchObject({ workspace: "elsewhere", token: { name: "newest" }, agent: null });
  });

  test.each([
    ["https://gate.example.org", "https://gate.example.org"],
    ["https://gate.example.org:8443/", "https://gate.example.org:8443"],
    ["http://gate.lan", "http://gate.lan"],
    ["https://gate.example.org/gatehouse", "local"],
    ["https://gate.example.org/gatehouse/", "local"],
  ])("starts at the root of a host: with the public URL %s at %s", async (url, base) => {
    const published = await startGateway({ yaml: `public_url: ${url}` });
    const asked = { token: published.gateway.operatorSecret, headers: { "gatehouse-operator": "ada" } };
    const { body } = await published.call("POST", "/operator/console-links", asked);
    await published.stop();
    expect(body.url.replace(published.url, "local")).toStartWith(`${base}/console#link=gthl_`);
  });

  test("is recorded with the operator's name, without its secret", async () => {
    const link = await linkFor(gateway);
    const { body } = await gateway.call("GET", "/v1/ledger?action=session.link&order=desc&limit=1");
    const signedIn = await redeem(link);
    const opened = await gateway.call("GET", `/v1/ledger/${signedIn.headers.get("gatehouse-ledger")}`);
    expect(opened.body).toMatchObject({
      action: "session.create",
      detail: { by: "link", link_by: "user:ada", link_seq: body.data[0].seq },
    });
    expect(body.data).toMatchObject([
      { actor: "user:ada", outcome: "succeeded", detail: { token: expect.stringMatching(/^tok_/) } },
    ]);
    expect(JSON.stringify(body)).not.toContain(link);
  });

  test("of a hundred and one pending links, the oldest has become invalid", async () => {
    const links: string[] = [];
    for (let count = 0; count < 101; count++) links.push(await linkFor(gateway));
    const [oldest = "", next = ""] = links;
    expect(await refusal(redeem(oldest))).toEqual(REFUSED);
    expect((await redeem(next)).status).toBe(201);
  });
});

/**
 * No other site's page can act through a browser's cookie: its requests are refused by headers that no page can set.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { type Browser, linkFor, signIn } from "../access/session-support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

setDefaultTimeout(60_000);

let gateway: TestGateway;
let browser: Browser;
/** The server's own origin. */
let own: string;
let port: string;

beforeAll(async () => {
  // The limit is not under test here.
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }" });
  own = gateway.url;
  port = new URL(own).port;
  browser = await signIn(gateway);
});
afterAll(() => gateway.stop());

/** Replaces `own` and `PORT` in a table row with the server's own origin and port, which are known once it runs. */
const here = (text: string) => text.replace("own", own).replace("PORT", port);

const named = (site: string | null, origin: string | null): Record<string, string> => ({
  ...(site === null ? {} : { "sec-fetch-site": site }),
  ...(origin === null ? {} : { origin: here(origin) }),
});

const READS = ["GET", "HEAD"] as const;
const WRITES = ["POST", "PATCH", "PUT", "DELETE"] as const;
const PATHS = {
  GET: "/v1/agents",
  HEAD: "/v1/agents",
  POST: "/v1/agents",
  PATCH: "/v1/workspace",
  DELETE: "/v1/session",
} as const;

/** Headers that a browser would send for another site's page. None of them is served, whatever the method. */
const FOREIGN: readonly (readonly [site: string | null, origin: string | null])[] = [
  ["cross-site", null],
  ["cross-site", "https://evil.example"],
  ["cross-site", "null"],
  ["cross-site", "own"],
  ["same-site", null],
  ["same-site", "http://127.0.0.1:1"],
  ["same-site", "own"],
  ["same-origin", "https://evil.example"],
  ["same-origin", "null"],
  ["none", "https://evil.example"],
  ["none", "null"],
  ["", null],
  ["SAME-ORIGIN", null],
  ["same-origin, cross-site", null],
  ["anything", "own"],
  [null, "https://evil.example"],
  [null, "null"],
  [null, ""],
  [null, "own."],
  [null, "own/"],
  [null, "own.evil.example"],
  [null, "https://127.0.0.1:PORT"],
  [null, "http://127.0.0.1"],
  [null, "http://127.0.0.1:1"],
  [null, "http://localhost:PORT"],
  [null, "http://evil.example:PORT"],
  [null, "http://127.0.0.1:PORT@evil.example"],
];
/** Enough to read, for a person or the server's own page, but not to change anything. */
const READ_ONLY: readonly (readonly [site: string | null, origin: string | null])[] = [
  [null, null],
  ["none", null],
  ["none", "own"],
];
const OWN: readonly (readonly [site: string | null, origin: string | null])[] = [
  ["same-origin", null],
  ["same-origin", "own"],
  [null, "own"],
];

const rows = (headers: typeof OWN, methods: readonly (keyof typeof PATHS)[]) =>
  methods.flatMap((method) => headers.map(([site, origin]) => ({ method, site, origin })));

describe("a request with the cookie is refused, and nothing is done,", () => {
  const refused = [
    ...rows(FOREIGN, [...READS, "POST", "PATCH", "DELETE"]),
    ...rows(READ_ONLY, ["POST", "PATCH", "DELETE"]),
  ];
  test.each(refused)("$method, Sec-Fetch-Site: $site, Origin: $origin", async ({ method, site, origin }) => {
    const answer = await browser.ask(method, PATHS[method], {
      headers: named(site, origin),
      ...(method === "POST" ? { body: { name: "forged", owner: "evil", memory_scope: "/" } } : {}),
      ...(method === "PATCH" ? { body: { limits: { concurrent_tasks: 1 } } } : {}),
    });
    expect(answer.status).toBe(403);
    expect(answer.headers.has("set-cookie")).toBe(false);
    if (method !== "HEAD") expect(answer.body.code).toBe("origin_forbidden");
    expect(answer.headers.has("access-control-allow-origin")).toBe(false);
    expect((await gateway.call("GET", "/v1/agents/forged")).status).toBe(404);
  });

  test("and none of them changes the limit or the session", async () => {
    expect((await gateway.call("GET", "/v1/workspace")).body.limits.concurrent_tasks).toBe(60);
    expect((await browser.ask("GET", "/v1/session")).body.session.id).toBe(browser.id);
  });

  test("and it is recorded as unauthenticated, once a minute for each source", async () => {
    const { body } = await gateway.call("GET", "/v1/ledger?action=auth.refused&limit=200");
    expect(body.data).toMatchObject([{ actor: "anonymous", outcome: "denied", code: "origin_forbidden" }]);
  });

  test.each(["/v1/models", "/v1/models/builtin/extractive"])(
    "also for %s, which existing clients call too, and where x-api-key takes precedence",
    async (path) => {
      const foreign = named("cross-site", "https://evil.example");
      for (const headers of [foreign, { ...foreign, "anthropic-version": "2023-06-01" }]) {
        const refused = await browser.ask("GET", path, { headers });
        expect([refused.status, refused.headers.get("gatehouse-code")]).toEqual([403, "origin_forbidden"]);
      }
      expect((await browser.ask("GET", path)).status).toBe(200);
      const keyed = (key: string) =>
        browser.ask("GET", path, { headers: { ...named("same-origin", null), "x-api-key": key } });
      expect((await keyed(gateway.admin)).status).toBe(200);
      expect((await keyed("gth_none")).status).toBe(401);
    },
  );

  test("no preflight is granted", async () => {
    const headers = {
      ...named("cross-site", "https://evil.example"),
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization",
    };
    for (const path of Object.values(PATHS)) {
      const answer = await gateway.call("OPTIONS", path, { token: null, headers });
      expect(answer.status).toBe(405);
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });
});

describe("a request with the cookie is served", () => {
  test.each([...rows(READ_ONLY, READS), ...rows(OWN, READS)])(
    "$method, Sec-Fetch-Site: $site, Origin: $origin",
    async ({ method, site, origin }) => {
      expect((await browser.ask(method, PATHS[method], { headers: named(site, origin) })).status).toBe(200);
    },
  );

  test.each(rows(OWN, ["PATCH"]))(
    "$method, Sec-Fetch-Site: $site, Origin: $origin",
    async ({ site, origin }) => {
      const body = { limits: { concurrent_tasks: 60 } };
      const answer = await browser.ask("PATCH", "/v1/workspace", { headers: named(site, origin), body });
      expect(answer.status).toBe(200);
    },
  );

  test("and no browser caches the answer, or treats it as a page", async () => {
    const { headers } = await browser.ask("GET", "/v1/agents");
    expect([headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
      "no-store",
      "nosniff",
    ]);
  });
});

describe("signing in from another site's page is refused, so nobody is signed in as somebody else", () => {
  const foreign = FOREIGN.map(([site, origin]) => ({ site, origin }));
  test.each([...foreign, { site: "none", origin: null }, { site: "none", origin: "own" }])(
    "Sec-Fetch-Site: $site, Origin: $origin",
    async ({ site, origin }) => {
      const link = await linkFor(gateway);
      for (const token of [gateway.admin, link]) {
        const answer = await gateway.call("POST", "/v1/session", { token, headers: named(site, origin) });
        expect([answer.status, answer.body.code]).toEqual([403, "origin_forbidden"]);
        expect(answer.headers.has("set-cookie")).toBe(false);
      }
      // The attempt did not use up the link.
      expect((await gateway.call("POST", "/v1/session", { token: link })).status).toBe(201);
    },
  );

  test.each([...OWN.map(([site, origin]) => ({ site, origin })), { site: null, origin: null }])(
    "but not from the server's own page or a program: Sec-Fetch-Site: $site, Origin: $origin",
    async ({ site, origin }) => {
      const answer = await gateway.call("POST", "/v1/session", { headers: named(site, origin) });
      expect(answer.status).toBe(201);
    },
  );
});

test("without a public HTTPS URL, plain HTTP signs in from the network, with a suitable cookie", async () => {
  const headers = { host: "192.168.1.5:8420", origin: "http://192.168.1.5:8420" };
  const answer = await gateway.call("POST", "/v1/session", { headers });
  expect(answer.status).toBe(201);
  expect(answer.headers.get("set-cookie")).toEndWith("; SameSite=Strict");
});

describe("with a public URL", () => {
  let published: TestGateway;
  let signedIn: Browser;
  beforeAll(async () => {
    published = await startGateway({ yaml: "public_url: https://gate.example.org/gatehouse" });
    signedIn = await signIn(published);
  });
  afterAll(() => published.stop());
  const change = (host: string, cookie: string, origin: string, more: Record<string, string> = {}) =>
    published.call("PATCH", "/v1/workspace", {
      token: null,
      body: { limits: { concurrent_tasks: 60 } },
      headers: { host, cookie, origin, ...more },
    });
  const value = () => signedIn.cookie.slice(signedIn.cookie.indexOf("=") + 1);
  const atPublicName = () => `__Host-gatehouse_session=${value()}`;

  test.each([
    ["plain HTTP where HTTPS is expected", "gate.example.org", "http://gate.example.org"],
    ["a sibling", "gate.example.org", "https://other.example.org"],
    ["another port", "gate.example.org", "https://gate.example.org:8443"],
    ["its path", "gate.example.org", "https://gate.example.org/gatehouse"],
  ])("another origin is refused: %s", async (_, host, origin) => {
    const answer = await change(host, atPublicName(), origin);
    expect([answer.status, answer.body.code]).toEqual([403, "origin_forbidden"]);
  });

  test("its origin is accepted, even if the proxy names another host", async () => {
    const origin = "https://gate.example.org";
    expect((await change("gate.example.org", atPublicName(), origin)).status).toBe(200);
    const inside = `__Host-gatehouse_session_8420=${value()}`;
    expect((await change("10.0.0.7:8420", inside, origin)).status).toBe(200);
  });

  test.each([
    ["an address on the network", "192.168.1.5:8420", "http://192.168.1.5:8420"],
    ["a name on the network", "gate.lan", "http://gate.lan"],
    ["a name that only begins like the machine's name", "localhost.lan:8420", "http://localhost.lan:8420"],
    ["an address, and no origin is named", "[fe80::1]:8420", null],
    ["a name, and no origin is named", "gate.lan:8420", null],
  ])("plain HTTP signs nobody in, because browsers would drop the cookie: %s", async (_, host, origin) => {
    const link = await linkFor(published);
    const headers = { host, ...named(null, origin) };
    const open = async () => (await published.call("GET", "/v1/sessions")).body.data.length as number;
    const before = await open();
    for (const token of [published.admin, link]) {
      const answer = await published.call("POST", "/v1/session", { token, headers });
      expect([answer.status, answer.body.code]).toEqual([403, "insecure_origin"]);
      expect(answer.body.detail).toContain("public_url, which is https://gate.example.org/gatehouse");
      expect(answer.headers.has("set-cookie")).toBe(false);
    }
    expect(await open()).toBe(before);
    expect((await published.call("POST", "/v1/session", { token: link })).status).toBe(201);
  });

  test.each([
    ["the public name", "gate.example.org", "https://gate.example.org"],
    ["the public name, and no origin is named", "gate.example.org", null],
    ["the proxy's name for the server", "10.0.0.7:8420", "https://gate.example.org"],
    ["the machine itself", "127.0.0.1:8420", "http://127.0.0.1:8420"],
    ["its name", "localhost:8420", "http://localhost:8420"],
    ["its IPv6 address", "[::1]:8420", "http://[::1]:8420"],
    ["a subdomain of it", "gate.localhost", "http://gate.localhost"],
    ["its name, and no origin is named", "localhost:8420", null],
  ])("HTTPS and the machine itself sign in: %s", async (_, host, origin) => {
    const answer = await published.call("POST", "/v1/session", { headers: { host, ...named(null, origin) } });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("set-cookie")).toEndWith("; Secure");
  });

  test("and so is the machine's own address", async () => {
    expect((await change(new URL(published.url).host, signedIn.cookie, published.url)).status).toBe(200);
  });
});

test("whatever its headers, a request from a foreign origin changes nothing with the cookie", async () => {
  const foreign = fc.oneof(
    fc.constantFrom(
      "https://evil.example",
      "null",
      "",
      "http://127.0.0.1",
      "https://127.0.0.1:PORT",
      "own.",
      "own x",
    ),
    fc.webUrl({ withFragments: false }).map((url) => new URL(url).origin),
    fc.string({ unit: fc.constantFrom(..."aAeh:/.0127 -_@[]"), maxLength: 30 }),
  );
  const site = fc.constantFrom("same-origin", "same-site", "cross-site", "none", "", "x", null);
  const maybe = (...values: string[]) => fc.constantFrom(...values, null);
  const property = fc.asyncProperty(
    fc.constantFrom(...WRITES),
    fc.oneof(
      fc.record({ origin: foreign, site }),
      // Without an origin, the browser has to vouch for the page.
      fc.record({ origin: fc.constant(null), site: site.filter((each) => each !== "same-origin") }),
    ),
    fc.record({
      "sec-fetch-mode": maybe("navigate", "cors", "no-cors"),
      "sec-fetch-dest": maybe("document", "empty", "image"),
      referer: maybe("http://127.0.0.1:PORT/console", "https://evil.example/"),
      "x-forwarded-proto": maybe("https", "http", "https, http"),
      "x-forwarded-host": maybe("evil.example", "127.0.0.1:PORT"),
      "x-requested-with": maybe("XMLHttpRequest"),
      "content-type": maybe("application/json", "text/plain", "application/x-www-form-urlencoded"),
      "x-http-method-override": maybe("GET"),
      "gatehouse-operator": maybe("root"),
      "gatehouse-workspace": maybe("default"),
    }),
    async (method, { origin, site }, more) => {
      const given = Object.entries(more).flatMap(([name, value]) =>
        value === null ? [] : [[name, here(value)]],
      );
      const secure = more["x-forwarded-proto"]?.startsWith("https") === true;
      // In that case, what the proxy received over HTTPS is the page's own address.
      fc.pre(origin === null || here(origin).trim() !== (secure ? own.replace("http:", "https:") : own));
      const [name = "", secret = ""] = browser.cookie.split("=");
      // Send the cookie under the name that the server would accept.
      const cookie = `${secure ? `__Host-${name}` : name}=${secret}`;
      const headers = { ...Object.fromEntries(given), ...named(site, origin), cookie };
      const path = { POST: "/v1/agents", PATCH: "/v1/workspace", PUT: "/v1/agents/a", DELETE: "/v1/session" };
      const answer = await gateway.call(method, path[method], {
        token: null,
        headers,
        raw: JSON.stringify(
          method === "POST"
            ? { name: "forged", owner: "evil", memory_scope: "/" }
            : { limits: { concurrent_tasks: 1 } },
        ),
      });
      expect([answer.status, answer.body.code]).toEqual(
        method === "PUT" ? [405, "method_not_allowed"] : [403, "origin_forbidden"],
      );
    },
  );
  await fc.assert(property, { numRuns: 400 });
  expect((await gateway.call("GET", "/v1/agents/forged")).status).toBe(404);
  expect((await gateway.call("GET", "/v1/workspace")).body.limits.concurrent_tasks).toBe(60);
  expect((await browser.ask("GET", "/v1/session")).status).toBe(200);
});

/** What the MCP endpoint refuses before looking at anything else, and how. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ledger } from "../tasks/support.ts";
import { connect, hello, post, request } from "./support.ts";

const REQUEST_ID = /^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/;
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const PATHS = ["/mcp", "/mcp/sse"] as const;

describe.each(PATHS)("without a valid token %s answers 401 to", (path) => {
  test.each(["POST", "GET", "DELETE"])("%s, whatever else is wrong with it", async (method) => {
    const tokens = { none: null, unknown: createSecret(systemRandom), foreign: "sk-abc" };
    for (const [kind, token] of Object.entries(tokens)) {
      const answer = await gateway.call(method, path, {
        token,
        headers: { "content-type": "text/plain", "mcp-session-id": "none" },
        ...(method === "POST" ? { raw: "not json" } : {}),
      });
      expect([kind, answer.status, answer.headers.get("www-authenticate")]).toEqual([kind, 401, "Bearer"]);
      expect(answer.body.code).toBe(kind === "none" ? "unauthenticated" : "invalid_token");
      expect(answer.headers.get("gatehouse-request-id")).toMatch(REQUEST_ID);
    }
  });

  test("an incomplete body", async () => {
    const { promise: sent, resolve: end } = Promise.withResolvers<void>();
    const raw = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(10)),
      async pull(controller) {
        await sent;
        controller.close();
      },
    });
    const answer = await gateway.call("POST", path, { token: null, raw });
    expect(answer.status).toBe(401);
    end();
  });
});

describe("another site's page is refused before its token is checked", () => {
  test.each([["https://evil.example"], ["null"], ["http://localhost"], [""]])("%p", async (origin) => {
    for (const path of PATHS) {
      for (const method of ["POST", "GET", "DELETE"]) {
        for (const token of [null, gateway.admin]) {
          const answer = await gateway.call(method, path, { token, headers: { origin } });
          expect([answer.status, answer.body.code]).toEqual([403, "origin_forbidden"]);
        }
      }
    }
  });

  test("but the server's own page is served", async () => {
    const answer = await post(gateway, hello(), { headers: { origin: gateway.url } });
    expect(answer.status).toBe(200);
  });

  test("which is in the ledger, with its code and channel", async () => {
    // A source's refusals within a minute share one entry.
    const fresh = await startGateway();
    await fresh.call("POST", "/mcp", { headers: { origin: "null" } });
    const entries = await ledger(fresh);
    await fresh.stop();
    expect(entries.filter(({ outcome }) => outcome === "denied")).toMatchObject([
      { action: "auth.refused", code: "origin_forbidden", channel: "mcp", actor: "anonymous" },
    ]);
  });
});

describe("a body is refused", () => {
  const cases: readonly [string, { raw: string; headers?: Record<string, string> }, number, string][] = [
    ["that is not JSON", { raw: "{" }, 400, "invalid_json"],
    ["that is empty", { raw: "" }, 400, "invalid_json"],
    [
      "of another type",
      { raw: "{}", headers: { "content-type": "text/plain" } },
      415,
      "unsupported_media_type",
    ],
    [
      "that is compressed",
      { raw: "{}", headers: { "content-encoding": "gzip" } },
      415,
      "unsupported_media_type",
    ],
    ["over 10 MiB", { raw: `"${"x".repeat(10 * 1024 * 1024)}"` }, 413, "body_too_large"],
  ];
  test.each(cases)("%s", async (_, options, status, code) => {
    for (const path of PATHS) {
      const answer = await gateway.call("POST", path, options);
      expect([answer.status, answer.body.code]).toEqual([status, code]);
      expect(answer.headers.get("ratelimit-policy")).toBe('"requests";q=600;w=60');
    }
  });

  test("with the reason and the caller in the ledger", async () => {
    const entries = await ledger(gateway);
    const codes = entries.filter(({ action }) => action === "session.use").map(({ code }) => code);
    expect(new Set(codes)).toEqual(new Set(["invalid_json", "unsupported_media_type", "body_too_large"]));
    for (const entry of entries.filter(({ action }) => action === "session.use")) {
      expect(entry).toMatchObject({ phase: "single", outcome: "denied", channel: "mcp" });
      expect(entry.actor).toStartWith("token:");
    }
  });

  test.each([
    ["null", "null"],
    ["a text", '"initialize"'],
    ["an empty batch", "[]"],
    ["not JSON-RPC", '{"method":"initialize"}'],
    ["another version of JSON-RPC", '{"jsonrpc":"1.0","id":1,"method":"initialize","params":{}}'],
    ["a handshake without its parameters", '{"jsonrpc":"2.0","id":1,"method":"initialize"}'],
    ["a batch of two handshakes", JSON.stringify([hello(), hello()])],
  ])("that is %s, and opens no session", async (_, raw) => {
    const answer = await post(gateway, null, { raw });
    expect(answer.status).toBe(400);
    expect(answer.last.error.code).toBeNumber();
    expect(answer.headers.get("mcp-session-id")).toBeNull();
  });
});

describe("without a session", () => {
  test.each(["tools/list", "tools/call", "ping", "resources/list"])("%s is 400", async (method) => {
    for (const path of PATHS) {
      const answer = await post(gateway, request(method), { path });
      expect([answer.status, answer.last.error.code]).toEqual([400, -32_000]);
    }
  });

  test("GET /mcp is 405, since it has no older transport; DELETE is 400", async () => {
    const got = await gateway.call("GET", "/mcp", { headers: { accept: "text/event-stream" } });
    expect([got.status, got.headers.get("allow"), got.body.code]).toEqual([
      405,
      "POST",
      "method_not_allowed",
    ]);
    expect((await gateway.call("DELETE", "/mcp")).status).toBe(400);
    expect((await gateway.call("DELETE", "/mcp/sse")).status).toBe(400);
  });

  test("other methods are 405", async () => {
    for (const path of PATHS) {
      const answer = await gateway.call("PUT", path, { body: {} });
      expect([answer.status, answer.headers.get("allow")]).toEqual([405, "DELETE, GET, HEAD, POST"]);
    }
  });
});

describe("a session that does not belong to the caller is not found", () => {
  async function refusals(id: string, token: string): Promise<unknown[]> {
    const headers = { "mcp-session-id": id, accept: "application/json, text/event-stream" };
    const body = request("tools/list");
    const found: unknown[] = [];
    for (const [method, path, more] of [
      ["POST", "/mcp", { body }],
      ["POST", "/mcp/sse", { body }],
      ["GET", "/mcp", {}],
      ["GET", "/mcp/sse", {}],
      ["DELETE", "/mcp", {}],
      ["POST", `/mcp/sse?sessionId=${id}`, { body }],
    ] as const) {
      const answer = await gateway.call(method, path, { token, headers, ...more });
      found.push([method, path, answer.status, answer.body?.code]);
      expect(answer.headers.get("ratelimit")).toMatch(/^"requests";r=\d+;t=\d+$/);
    }
    return found.filter((each) => JSON.stringify(each).includes('404,"not_found"') === false);
  }

  test("one that never existed", async () => {
    expect(await refusals("none", gateway.admin)).toEqual([]);
  });

  test("one of another token, even of the same scopes", async () => {
    const { id } = await connect(gateway);
    expect(await refusals(id, await gateway.token({ scopes: ["admin"] }))).toEqual([]);
  });

  test("one of another workspace", async () => {
    const { id } = await connect(gateway);
    expect(await refusals(id, await gateway.workspace("other"))).toEqual([]);
  });

  test("one that has ended, and one of the other transport", async () => {
    const client = await connect(gateway);
    const asOlder = await post(gateway, request("ping"), { path: `/mcp/sse?sessionId=${client.id}` });
    expect(asOlder.status).toBe(404);
    expect(await client.end()).toBe(200);
    expect(await refusals(client.id, gateway.admin)).toEqual([]);
  });

  test("and its owner can still use it, whoever else requested it", async () => {
    const client = await connect(gateway);
    const headers = { authorization: `Bearer ${gateway.admin}`, "mcp-session-id": client.id };
    for (const path of PATHS) {
      expect((await fetch(gateway.url + path, { method: "HEAD", headers })).status).toBe(405);
    }
    await refusals(client.id, await gateway.token({ scopes: ["admin"] }));
    expect(await client.toolNames()).toContain("time__now");
  });
});

describe("a client asking for this server's authorisation metadata is told in JSON that there is none", () => {
  test.each([
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
    "/mcp/.well-known/openid-configuration",
  ])("%s", async (path) => {
    const answer = await gateway.call("GET", path, { token: null });
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    expect(answer.headers.get("content-type")).toContain("json");
  });
});

/** Which types of answer clients accept, which version they speak, and which headers each answer carries. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect as connectTcp } from "node:net";
import { rawRequest } from "../http/stream-support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { BOTH, connect, hello, post, postOpen, request, VERSIONS } from "./support.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

describe("Accept", () => {
  test.each([["text/html"], ["image/*"], ["application/xml, text/plain"]])(
    "only %s is refused",
    async (accept) => {
      const answer = await post(gateway, hello(), { headers: { accept } });
      expect([answer.status, answer.headers.get("mcp-session-id")]).toEqual([406, null]);
    },
  );

  test.each([
    ["both types", BOTH, "text/event-stream"],
    ["anything", "*/*", "text/event-stream"],
    ["a stream alone", "text/event-stream", "text/event-stream"],
    ["JSON alone", "application/json", "application/json"],
    ["JSON in capitals, with a weight", "Application/JSON;q=0.9", "application/json"],
    ["any application type", "application/*", "application/json"],
    ["a browser's", "text/html,application/xhtml+xml,*/*;q=0.8", "text/event-stream"],
  ])("of %s is answered in that type", async (_, accept, type) => {
    const headers = { accept };
    const hi = await post(gateway, hello(), { headers });
    expect([hi.status, hi.headers.get("content-type")]).toEqual([200, type]);
    expect(hi.last.result.serverInfo.name).toBe("gatehouse");
    const session = { ...headers, "mcp-session-id": hi.headers.get("mcp-session-id") ?? "" };
    const told = { jsonrpc: "2.0", method: "notifications/initialized" };
    expect((await post(gateway, told, { headers: session })).status).toBe(202);
    const list = await post(gateway, request("tools/list"), { headers: session });
    expect(list.last.result.tools.length).toBeGreaterThan(3);
    const batch = await post(gateway, [request("ping"), request("tools/list")], { headers: session });
    expect(batch.messages).toHaveLength(2);
  });

  test("that is missing accepts anything", async () => {
    const body = JSON.stringify(hello());
    const client = rawRequest(gateway, { method: "POST", path: "/mcp", body });
    expect(await client.head()).toContain("200 OK");
    await client.saw('"serverInfo"');
    client.socket.destroy();
  });

  test("of anything opens a session's stream, but of only JSON does not", async () => {
    const client = await connect(gateway);
    const refused = await gateway.call("GET", "/mcp", {
      headers: { accept: "application/json", "mcp-session-id": client.id },
    });
    expect(refused.status).toBe(406);
    const stream = await client.listen({ accept: "*/*" });
    expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    stream.leave();
  });
});

describe("a version", () => {
  test.each(VERSIONS)("%s is used on request", async (version) => {
    for (const path of ["/mcp", "/mcp/sse"]) {
      const client = await connect(gateway, { version, path });
      expect(client.version).toBe(version);
      expect(await client.toolNames()).toEqual(["time__now", "vault__read", "vault__search", "vault__write"]);
      expect(await client.ask("ping")).toEqual({});
    }
  });

  test("that is unknown is answered with the newest", async () => {
    for (const version of ["2030-01-01", "1", ""]) {
      const { last } = await post(gateway, hello(version));
      expect(last.result.protocolVersion).toBe("2025-11-25");
    }
  });

  test("in the header has to be one of them", async () => {
    const client = await connect(gateway);
    const headers = { "mcp-protocol-version": "2030-01-01" };
    const answer = await client.post(request("ping"), { headers });
    expect([answer.status, answer.last.error.code]).toEqual([400, -32_000]);
  });

  test("without the header is the session's own", async () => {
    const { id } = await connect(gateway, { version: "2025-06-18" });
    const answer = await post(gateway, request("ping"), { headers: { "mcp-session-id": id } });
    expect(answer.last.result).toEqual({});
  });
});

describe("a batch", () => {
  test("is answered completely, each request by its id; its notifications are not", async () => {
    const client = await connect(gateway, { version: "2025-03-26" });
    const asked = [request("tools/list"), request("ping"), request("no/such")];
    const answer = await client.post([...asked, { jsonrpc: "2.0", method: "notifications/x" }]);
    expect(answer.messages.map(({ id }) => id).sort()).toEqual(asked.map(({ id }) => id).sort());
    expect(answer.messages.find(({ error }) => error)?.error.code).toBe(-32_601);
  });

  test("of more than 100 is refused before any of it runs", async () => {
    const client = await connect(gateway);
    const answer = await client.post(Array.from({ length: 101 }, () => request("tools/list")));
    expect([answer.status, answer.last.error.code]).toEqual([400, -32_600]);
    expect(answer.headers.get("ratelimit")).toBeNull();
  });
});

describe("every answer carries", () => {
  test("its request id, the rest of the limit, and the session's id", async () => {
    const client = await connect(gateway);
    const answer = await client.post(request("tools/list"));
    expect(answer.headers.get("gatehouse-request-id")).toStartWith("req_");
    expect(answer.headers.get("ratelimit-policy")).toBe('"requests";q=600;w=60');
    expect(answer.headers.get("ratelimit")).toMatch(/^"requests";r=\d+;t=\d+$/);
    expect(answer.headers.get("mcp-session-id")).toBe(client.id);
    const pinged = await client.post(request("ping"));
    expect(pinged.headers.get("gatehouse-request-id")).toStartWith("req_");
    expect(pinged.headers.get("ratelimit")).toBeNull();
  });

  test("the position of its evidence: a session's start in a header, each call's in _meta", async () => {
    const hi = await post(gateway, hello());
    const seq = Number(hi.headers.get("gatehouse-ledger"));
    const entry = await gateway.call("GET", `/v1/ledger/${seq}`);
    expect(entry.body).toMatchObject({ action: "session.open", channel: "mcp", outcome: "succeeded" });
    const client = await connect(gateway);
    const { _meta } = await client.ask("tools/list");
    const listed = await gateway.call("GET", `/v1/ledger/${_meta["gatehouse/ledger"]}`);
    expect(listed.body).toMatchObject({ action: "tool.list", channel: "mcp", phase: "single" });
  });

  test("the refusal's code and request id, if it is one", async () => {
    const client = await connect(gateway);
    const answer = await client.post(request("tools/call", { name: "none.there" }));
    expect(answer.last.error).toMatchObject({ code: -32_602, data: { code: "unknown_tool" } });
    expect(answer.last.error.data.request_id).toBe(answer.headers.get("gatehouse-request-id"));
  });
});

test("a session's id is unguessable and unique", async () => {
  const ids = new Set<string>();
  for (let opened = 0; opened < 5; opened++) {
    const { id } = await connect(gateway);
    expect(id).toMatch(/^[0-9a-z]{26}[0-9a-f]{32}$/);
    ids.add(id.slice(26));
  }
  expect(ids.size).toBe(5);
});

describe("an invalid Host header is refused, and is not a fault of the server", () => {
  test.each(["a b", "[::", "%", "x/y?z"])("%p", async (host) => {
    const { hostname, port } = new URL(gateway.url);
    for (const path of ["/mcp", "/mcp/sse", "/mcp/sse?sessionId=x"]) {
      const answer = Promise.withResolvers<string>();
      let text = "";
      const socket = connectTcp({ host: hostname, port: Number(port) });
      socket.on("data", (data) => {
        text += data;
      });
      socket.on("close", () => answer.resolve(text)).on("error", () => answer.resolve(text));
      const head = [`GET ${path} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${gateway.admin}`];
      socket.write(`${[...head, "Connection: close"].join("\r\n")}\r\n\r\n`);
      expect(await answer.promise).toMatch(/^HTTP\/1.1 (400|403)/);
    }
  });
});

test("a slow answer is sent as a stream that is already open", async () => {
  const client = await connect(gateway);
  const response = await postOpen(gateway, request("ping"), { headers: { "mcp-session-id": client.id } });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("cache-control")).toContain("no-cache");
  await response.text();
});

/** Findings of a review of the MCP endpoint: evidence of refusals, separation of clients, and room for everybody. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { Caller } from "../../src/access/caller.ts";
import { silentLog } from "../../src/base/log.ts";
import type { McpSession } from "../../src/mcp/session.ts";
import { McpSessions } from "../../src/mcp/sessions.ts";
import { SseTransport } from "../../src/mcp/sse-transport.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger, until } from "../tasks/support.ts";
import { addConnector, type Client, connect, hello, isMessage, request, type Stream } from "./support.ts";

const CHANGED = isMessage("notifications/tools/list_changed");
/** Longer than the time over which changes are gathered. */
const GATHERED_MS = 1_000;

let gateway: TestGateway;
let upstream: ScriptedMcp;
let clock: FakeClock;
beforeAll(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }\n" });
  upstream = startScriptedMcp(["one"]);
  await addConnector(gateway, "up", upstream.url);
  await gateway.agent("clerk", { tools: ["time.*"] });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

const lastSeq = async () => (await ledger(gateway)).at(-1)?.seq ?? 0;
/** Filters by channel, because reading the ledger over REST is recorded too. */
const byMcpAfter = async (seq: number) =>
  (await ledger(gateway)).filter((entry) => entry.seq > seq && Reflect.get(entry, "channel") === "mcp");

describe("a refusal names its entry in the ledger:", () => {
  const builtin = (name: string) => ({ name, arguments: {} });

  test.each([
    ["a builtin tool that does not exist", "tools/call", builtin("time__none"), "unknown_tool", true],
    ["an upstream's tool that does not exist", "tools/call", builtin("up__none"), "unknown_tool", false],
    [
      "a builtin tool that the agent may not use",
      "tools/call",
      builtin("vault__read"),
      "tool_forbidden",
      true,
    ],
    [
      "an upstream's tool that the agent may not use",
      "tools/call",
      builtin("up__one"),
      "tool_forbidden",
      false,
    ],
    ["an invalid cursor", "tools/list", { cursor: "?" }, "validation_failed", true],
    ["a number as the name", "tools/call", { name: 7, arguments: {} }, "validation_failed", false],
    ["no name", "tools/call", {}, "validation_failed", false],
    [
      "a list as the arguments",
      "tools/call",
      { name: "time__now", arguments: [] },
      "validation_failed",
      true,
    ],
    [
      "a list as an upstream's arguments",
      "tools/call",
      { name: "up__one", arguments: [1] },
      "validation_failed",
      false,
    ],
  ])("%s", async (_, method, params, code, isAtOnce) => {
    const client = await connect(gateway, { token: await gateway.token({ agent: "clerk" }) });
    const before = await lastSeq();
    const { status, headers, last } = await client.post(request(method, params));
    const entries = await byMcpAfter(before);
    expect(entries).toMatchObject([
      { phase: "single", outcome: "denied", code, channel: "mcp", agent: "clerk" },
    ]);
    const { seq } = entries[0] ?? { seq: 0 };
    expect([status, last.error.data.code, last.error.data.ledger]).toEqual([200, code, seq]);
    expect(headers.get("gatehouse-ledger")).toBe(isAtOnce ? String(seq) : null);
    expect(upstream.calls).toEqual([]);
  });
});

test("a removed agent's half-sent handshake leaves the tools of other tokens with its scopes", async () => {
  await gateway.agent("leaver");
  const scopes = ["tools:*"];
  const leaver = await gateway.token({ agent: "leaver", scopes });
  const other = await gateway.token({ scopes });
  let removed = 0;
  // The body is requested only after the caller has been authenticated.
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        removed = (await gateway.call("DELETE", "/v1/agents/leaver")).status;
        controller.enqueue(new TextEncoder().encode(JSON.stringify(hello())));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const headers = { authorization: `Bearer ${leaver}`, "content-type": "application/json" };
  const late = await gateway.gateway.handle(
    new Request("http://gate/mcp", { method: "POST", headers, body }),
  );
  expect([removed, late.status]).toEqual([204, 401]);
  await late.text();
  const client = await connect(gateway, { token: other });
  expect(await client.toolNames()).toEqual([
    "time__now",
    "up__one",
    "vault__read",
    "vault__search",
    "vault__write",
  ]);
});

describe("tools that changed while a client was not listening", () => {
  const change = async () => {
    await addConnector(gateway, "more", upstream.url);
    clock.advance(GATHERED_MS);
  };
  const changeBack = async () => {
    expect((await gateway.call("DELETE", "/v1/connectors/more")).status).toBe(204);
    clock.advance(GATHERED_MS);
  };

  test("are notified once, when it begins to listen", async () => {
    const client = await connect(gateway);
    await change();
    const stream = await client.listen();
    await stream.saw(CHANGED);
    await changeBack();
    await until(() => stream.events.filter(CHANGED).length >= 2);
    expect(stream.events.filter(CHANGED)).toHaveLength(2);
    stream.leave();
  });

  test("and changed back, are not notified", async () => {
    const client = await connect(gateway);
    await change();
    await changeBack();
    const stream = await listenQuietly(client);
    await change();
    await stream.saw(CHANGED);
    expect(stream.events.filter(CHANGED)).toHaveLength(1);
    stream.leave();
    await changeBack();
  });

  test("and that only others may use, are not notified", async () => {
    const client = await connect(gateway, { token: await gateway.token({ agent: "clerk" }) });
    await change();
    const stream = await listenQuietly(client);
    await gateway.call("PATCH", "/v1/agents/clerk", { body: { tools: ["vault.*"] } });
    clock.advance(GATHERED_MS);
    await stream.saw(CHANGED);
    expect(stream.events.filter(CHANGED)).toHaveLength(1);
    stream.leave();
    await changeBack();
  });

  /** Opens a stream and checks that it reports no earlier changes. These would come before the stream is open. */
  async function listenQuietly(client: Client): Promise<Stream> {
    const stream = await client.listen();
    await until(() => stream.text().startsWith(": open"));
    await client.toolNames();
    expect(stream.events.filter(CHANGED)).toEqual([]);
    return stream;
  }
});

describe("arguments that are nested 500,000 levels deep", () => {
  const DEPTH = 500_000;
  const deep = "[".repeat(DEPTH) + "]".repeat(DEPTH);

  test.each([
    ["of a builtin tool", "time__now"],
    ["of an upstream's tool", "up__one"],
    ["of an agent", "agents__clerk"],
  ])("%s are refused with a plain message, and the server continues", async (_, name) => {
    const client = await connect(gateway);
    const raw = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":{"a":${deep}}}}`;
    const { status, last } = await client.post(null, { raw });
    const words = JSON.stringify([status, last]);
    expect(words).not.toContain('"internal"');
    expect(words).toMatch(/nested too deeply|arguments are not valid/);
    expect(words.length).toBeLessThan(2_000);
    expect(await client.toolNames()).toContain("time__now");
  });
});

const IDLE_CALLER: Caller = {
  workspaceId: 1,
  workspace: "default",
  actor: "token:tok_1",
  agent: null,
  scopes: [],
  toolsMode: "all",
  name: "tests",
  person: null,
  role: null,
};

describe("when a node has its maximum number of sessions, from five workspaces", () => {
  const PER_WORKSPACE = 2_000;
  const WORKSPACES = [1, 2, 3, 4, 5];

  function full(streams: number): { readonly sessions: McpSessions; readonly all: readonly McpSession[] } {
    const sessionClock = new FakeClock();
    const sessions = new McpSessions({
      clock: sessionClock,
      log: silentLog,
      store: null,
      rightsEnd: () => Number.POSITIVE_INFINITY,
    });
    const server = new Server({ name: "tests", version: "1" });
    const all: McpSession[] = [];
    for (let at = 0; at < PER_WORKSPACE; at++) {
      for (const workspaceId of WORKSPACES) {
        const session = fakeSession(server, workspaceId, all.length, streams);
        sessions.makeRoom(workspaceId);
        sessions.add(session);
        all.push(session);
      }
    }
    return { sessions, all };
  }

  function fakeSession(server: Server, workspaceId: number, at: number, streams: number): McpSession {
    const id = `session-${at}`;
    return {
      id,
      workspaceId,
      actor: "token:tok_1",
      server,
      by: {
        kind: "sse",
        transport: new SseTransport(id, "http://gate/mcp/sse", new FakeClock(), () => ({
          release() {},
          endsBy() {},
        })),
      },
      caller: IDLE_CALLER,
      lastSeenAt: at,
      streams,
      requests: new Map(),
      hadStream: streams > 0,
      hadBatch: false,
      toldTools: "",
    };
  }

  const endedOf = (sessions: McpSessions, all: readonly McpSession[]): string[] =>
    all.filter(({ id, workspaceId, actor }) => !sessions.find(id, workspaceId, actor)).map(({ id }) => id);

  test("a client of a sixth workspace is served while all are in use, and the quietest session of the workspace with the most is closed", async () => {
    const { sessions, all } = full(1);
    sessions.makeRoom(6);
    expect(endedOf(sessions, all)).toEqual(["session-0"]);
    await sessions.stop();
  });

  test("a workspace that has its equal share is refused while all are in use", async () => {
    const { sessions, all } = full(1);
    const [first] = all;
    if (first) sessions.end(first);
    sessions.makeRoom(6);
    const server = new Server({ name: "tests", version: "1" });
    sessions.add(fakeSession(server, 6, all.length, 1));
    expect(() => sessions.makeRoom(1)).toThrow("Too many MCP sessions are open");
    expect(() => sessions.makeRoom(2)).toThrow("Too many MCP sessions are open");
    expect(endedOf(sessions, all)).toEqual(["session-0"]);
    await sessions.stop();
  });

  test("a client of a sixth workspace is served, and the session idle the longest is closed", async () => {
    const { sessions, all } = full(0);
    sessions.makeRoom(6);
    expect(sessions.size).toBe(9_999);
    expect(endedOf(sessions, all)).toEqual(["session-0"]);
    await sessions.stop();
  });
});

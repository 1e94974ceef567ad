/**
 * Connectors with many large tools: how much a listing returns at once, over REST and MCP, and what a model is sent.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";

const MIB = 1024 * 1024;
/** Maximum size of a page in bytes, including the one connector or tool by which it may exceed its limit. */
const MOST_REST = 4 * MIB + 8 * MIB;
const MOST_MCP = 2 * MIB + MIB / 4;
const TOOLS = 50;
/** Each takes 2.9 MiB, so there is room for ten. */
const [CONNECTORS, TAKEN] = [12, 10];

let gateway: TestGateway;
let upstream: ScriptedMcp;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
  const a = { type: "string", description: "x".repeat(60_000) };
  upstream = startScriptedMcp(
    Array.from({ length: TOOLS }, (_, at) => ({
      name: `t${at}`,
      inputSchema: { type: "object", properties: { a } },
    })),
  );
  for (let at = 0; at < CONNECTORS; at++) {
    const transport = { type: "http", url: upstream.url };
    const body = { name: `up${at}`, kind: "mcp", transport };
    expect((await gateway.call("POST", "/v1/connectors", { body })).status).toBe(201);
  }
}, 60_000);
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

interface Page {
  readonly data: readonly {
    readonly name: string;
    readonly error?: string;
    readonly tools: readonly object[];
  }[];
  readonly next_cursor: string | null;
}

/** All pages of the list, and the length of the longest page. */
async function allConnectors(
  query = "limit=200",
): Promise<{ data: Page["data"][number][]; longest: number }> {
  const data: Page["data"][number][] = [];
  let longest = 0;
  for (let cursor: string | null = ""; cursor !== null; ) {
    const response = await fetch(`${gateway.url}/v1/connectors?${query}${cursor && `&cursor=${cursor}`}`, {
      headers: { authorization: `Bearer ${gateway.admin}` },
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
    const text = await response.text();
    longest = Math.max(longest, text.length);
    const page: Page = JSON.parse(text);
    data.push(...page.data);
    cursor = page.next_cursor;
  }
  return { data, longest };
}

test("a connector beyond the workspace's limit has no tools, and reports it; the others keep theirs", async () => {
  const { data } = await allConnectors();
  const own = data.filter(({ name }) => name.startsWith("up"));
  expect(own.filter(({ tools }) => tools.length === TOOLS)).toHaveLength(TAKEN);
  const [refused, ...others] = own.filter(({ tools }) => tools.length === 0);
  expect(others).toHaveLength(CONNECTORS - TAKEN - 1);
  expect(refused?.error).toContain("it offers 50 tools (2.9 MiB). The workspace's other connectors have");
});

test("an OpenAPI document that exceeds the workspace's room is refused with connector_limit", async () => {
  const description = "d".repeat(3_900);
  const names = Array.from({ length: 900 }, (_, at) => [`/p${at}`, { get: { description, responses: {} } }]);
  const spec = { openapi: "3.1.0", info: { title: "t", version: "1" }, paths: Object.fromEntries(names) };
  const body = { name: "api", kind: "openapi", spec, base_url: upstream.url };
  const { status, body: problem } = await gateway.call("POST", "/v1/connectors", { body });
  expect([status, problem.code]).toEqual([409, "connector_limit"]);
  expect(problem.detail).toContain("together they may have 10000 tools (32.0 MiB)");
});

describe("a list over REST", () => {
  test("is divided into pages by length as well as by number, each connector once", async () => {
    const { data, longest } = await allConnectors();
    expect(longest).toBeLessThan(MOST_REST);
    const names = data.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)].sort());
    expect(names).toHaveLength(14);
    expect((await allConnectors("limit=1")).data.map(({ name }) => name)).toEqual(names);
  });
});

describe("a list over MCP", () => {
  async function post(session: string | null, message: object): Promise<Response> {
    return fetch(`${gateway.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${gateway.admin}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(session === null ? {} : { "mcp-session-id": session }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  }

  async function open(): Promise<string | null> {
    const params = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    const answer = await post(null, { id: 1, method: "initialize", params });
    await answer.text();
    return answer.headers.get("mcp-session-id");
  }

  const asText = (text: string) =>
    text
      .split("\n")
      .find((line) => line.startsWith("data: {"))
      ?.slice(6) ?? text;

  test.each([
    ["that is answered at once", {}, MOST_MCP],
    ["that is answered by a stream", { _meta: { progressToken: 1 } }, MIB + MIB / 4],
  ])("%s is divided into pages by length, each tool once and with its schema", async (_, params, most) => {
    const session = await open();
    const names: string[] = [];
    let pages = 0;
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor; isFirst = false) {
      const asked = cursor === undefined ? params : { ...params, cursor };
      const text = await (await post(session, { id: 2, method: "tools/list", params: asked })).text();
      expect(text.length).toBeLessThan(most);
      const { result } = JSON.parse(asText(text));
      pages += 1;
      cursor = result.nextCursor;
      for (const { name, inputSchema } of result.tools) {
        names.push(name);
        if (name.startsWith("up")) expect(inputSchema.properties.a.description).toHaveLength(60_000);
      }
    }
    expect(pages).toBeGreaterThan(7);
    expect(names.filter((name) => name.startsWith("up"))).toHaveLength(TAKEN * TOOLS);
    expect(new Set(names).size).toBe(names.length);
  });
});

test("a task whose tool definitions are too long together is refused, with the limit", async () => {
  await gateway.agent("wide");
  const tools = Array.from({ length: 30 }, (_, at) => `up0.t${at}`);
  const create = (named: readonly string[]) =>
    gateway.call("POST", "/v1/tasks", { body: { agent: "wide", prompt: "x", tools: named } });
  const refused = await create(tools);
  expect([refused.status, refused.body.code]).toEqual([422, "validation_failed"]);
  expect(refused.body.detail).toMatch(
    /^\/tools: the definitions of these 30 tools have 180\d{4} characters in total; the limit is 1048576/,
  );
  expect((await create(tools.slice(0, 10))).status).toBe(202);
});

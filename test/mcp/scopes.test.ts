/** A tool is listed for exactly those who may call it, over MCP and over REST. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger } from "../tasks/support.ts";
import { addConnector, connect } from "./support.ts";

let gateway: TestGateway;
let upstream: ScriptedMcp;
let agents = 0;
let agent: string;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
  upstream = startScriptedMcp([
    "search_code",
    "search_issues",
    "get-it",
    "get_it",
    "drop",
    { name: "wipe", inputSchema: { type: "object" }, annotations: { destructiveHint: true } },
    { name: "add", inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } },
  ]);
  await addConnector(gateway, "up", upstream.url, { scopes: ["search_*", "get*", "add", "wipe"] });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});
beforeEach(async () => {
  agent = `agent-${++agents}`;
  await gateway.agent(agent);
});

/** Whether a tool is listed, callable over MCP and usable in a task, for a token and an agent with these rights. */
async function judge(
  tool: string,
  { scopes, tools }: { readonly scopes: readonly string[]; readonly tools?: readonly string[] },
): Promise<{ listed: boolean; mcp: string; rest: string }> {
  if (tools) await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tools } });
  const token = await gateway.token({ agent, scopes: ["tasks:write", "tasks:read", ...scopes] });
  const client = await connect(gateway, { token });
  const before = upstream.calls.length;
  const { last } = await client.post({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: tool, arguments: {} },
  });
  const sent = upstream.calls.length - before;
  const shown = (await client.ask("tools/list")).tools.map(({ title }: { title: string }) => title);
  const task = await gateway.call("POST", "/v1/tasks", {
    token,
    body: { agent, prompt: "x", tools: [tool] },
  });
  const mcp = last.error?.data.code ?? (sent === 1 ? "called" : `sent ${sent} times`);
  // A task that was taken may call its tool before this line.
  if (last.error && upstream.calls.length > before) throw new Error("it was refused, but sent anyway");
  return { listed: shown.includes(tool), mcp, rest: task.body.code ?? "taken" };
}

describe("a tool is refused and not listed:", () => {
  const forbidden = { listed: false, mcp: "tool_forbidden", rest: "tool_forbidden" };
  const unknown = { listed: false, mcp: "unknown_tool", rest: "unknown_tool" };

  test.each([
    ["to a token without tools", "up.search_code", { scopes: [] }],
    ["to a token with other tools", "up.search_code", { scopes: ["tools:vault.*"] }],
    ["to a token with the beginning of its name", "up.search_code", { scopes: ["tools:up.search"] }],
    ["to a token with another letter case", "up.search_code", { scopes: ["tools:UP.*"] }],
    ["to a token with its MCP name", "up.search_code", { scopes: ["tools:up__search_code"] }],
    ["to an agent with other tools", "up.search_code", { scopes: ["tools:*"], tools: ["vault.*"] }],
    ["to an agent without tools", "up.search_code", { scopes: ["tools:*"], tools: [] }],
    ["if agent and token share nothing", "up.search_code", { scopes: ["tools:up.*"], tools: ["time.*"] }],
    [
      "to an administrator's token of such an agent",
      "up.search_code",
      { scopes: ["admin"], tools: ["time.*"] },
    ],
    ["outside of its connector's scopes", "up.drop", { scopes: ["admin"] }],
    [
      "outside of them, even if token and agent name it",
      "up.drop",
      { scopes: ["tools:up.drop"], tools: ["up.drop"] },
    ],
  ])("%s", async (_, tool, rights) => {
    expect(await judge(tool, rights)).toEqual(forbidden);
  });

  test.each([
    ["that does not exist", "up.none"],
    ["with no connector", "none.search"],
    ["without a name", "up."],
    ["that is a property of every object", "__proto__"],
    ["in another letter case", "Up.search_code"],
    ["with a space", "up.search_code "],
  ])("%s is unknown", async (_, tool) => {
    expect(await judge(tool, { scopes: ["tools:*"] })).toEqual(unknown);
  });
});

describe("a tool is called and listed", () => {
  test.each([
    ["by all", "up.search_code", { scopes: ["tools:*"] }],
    ["by its name", "up.search_code", { scopes: ["tools:up.search_code"], tools: ["up.search_code"] }],
    ["by a glob of both", "up.search_issues", { scopes: ["tools:up.search_*"], tools: ["*issues"] }],
    ["by an administrator", "up.get-it", { scopes: ["admin"] }],
  ])("%s", async (_, tool, rights) => {
    expect(await judge(tool, rights)).toEqual({ listed: true, mcp: "called", rest: "taken" });
  });

  test("by its dotted name and by its shown name, which are the same tool", async () => {
    const client = await connect(gateway);
    for (const name of ["up.search_code", "up__search_code"]) {
      expect((await client.call(name, { a: 1 })).content[0].text).toBe('search_code {"a":1}');
    }
  });

  test("under distinct names if two would be the same", async () => {
    const client = await connect(gateway);
    const { tools } = await client.ask("tools/list");
    const named = (title: string) => tools.find((tool: { title: string }) => tool.title === title).name;
    expect(named("up.get_it")).toBe("up__get_it");
    expect(named("up.get-it")).toMatch(/^up__get_it_[0-9a-f]{8}$/);
    for (const [name, own] of [
      ["up__get_it", "get_it"],
      ["up.get_it", "get_it"],
      [named("up.get-it"), "get-it"],
      ["up.get-it", "get-it"],
    ]) {
      expect((await client.call(name)).content[0].text).toBe(`${own} {}`);
    }
  });
});

test("nothing is sent for invalid arguments, and the caller reads what is wrong", async () => {
  const client = await connect(gateway);
  const before = upstream.calls.length;
  for (const input of [{}, { n: "1" }, { n: 1.5 }]) {
    const answer = await client.call("up__add", input);
    expect(answer.isError).toBe(true);
    expect(answer.content[0].text).toContain("n");
  }
  expect(upstream.calls.length).toBe(before);
  expect((await client.call("up__add", { n: 1 })).content[0].text).toBe('add {"n":1}');
  for (const wrong of [
    { name: 1 },
    { name: "up__add", arguments: [] },
    { name: "up__add", arguments: "x" },
    {},
  ]) {
    expect((await client.refusal("tools/call", wrong)).code).toBe(-32_602);
  }
});

test("a destructive tool waits for a person only if an agent calls it", async () => {
  const client = await connect(gateway, { token: await gateway.token({ agent }) });
  const waits = async (tool: string) => {
    const before = upstream.calls.length;
    const answer = client.call(tool);
    let data: { task: string; call_id: string }[] = [];
    while (data.length === 0) data = (await gateway.call("GET", "/v1/approvals")).body.data;
    expect(upstream.calls.length).toBe(before);
    const path = `/v1/tasks/${data[0]?.task}/approvals/${data[0]?.call_id}`;
    await gateway.call("POST", path, { body: { decision: "deny" } });
    expect((await answer).isError).toBe(true);
    expect(upstream.calls.length).toBe(before);
  };
  await waits("up__wipe");
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { approvals: [] } });
  expect((await client.call("up__wipe")).content[0].text).toBe("wipe {}");
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { approvals: ["up.search_*"] } });
  await waits("up__search_code");
});

test("a tool shows its upstream's description", async () => {
  const client = await connect(gateway);
  const { tools } = await client.ask("tools/list");
  expect(tools.find(({ name }: { name: string }) => name === "up__wipe")).toEqual({
    name: "up__wipe",
    title: "up.wipe",
    description: "",
    inputSchema: { type: "object" },
    annotations: { destructiveHint: true },
  });
});

test("each refusal is in the ledger with its code and tool, and the token that called", async () => {
  const token = await gateway.token({ agent, scopes: ["tools:time.*"] });
  const client = await connect(gateway, { token });
  await client.refusal("tools/call", { name: "up__search_code" });
  await client.refusal("tools/call", { name: "up.none" });
  const denied = (await ledger(gateway)).filter(
    (entry) => entry.agent === agent && entry.outcome === "denied",
  );
  expect(denied).toMatchObject([
    { action: "tool.call", outcome: "denied", code: "tool_forbidden", tool: "up.search_code", agent },
    { action: "tool.call", outcome: "denied", code: "unknown_tool", tool: "up.none", agent },
  ]);
});

test("more than a thousand tools are listed in pages, each tool once", async () => {
  const big = startScriptedMcp(Array.from({ length: 700 }, (_, at) => `tool_${at}`));
  await addConnector(gateway, "big", big.url);
  await addConnector(gateway, "bigger", big.url);
  const client = await connect(gateway);
  const first = await client.ask("tools/list");
  expect(first.tools).toHaveLength(1_000);
  const second = await client.ask("tools/list", { cursor: first.nextCursor });
  expect(second.nextCursor).toBeUndefined();
  const names = [...first.tools, ...second.tools].map(({ name }: { name: string }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.filter((name) => name.startsWith("big"))).toHaveLength(1_400);
  for (const cursor of ["", "x", "%%%", 7, null, Buffer.from("no name").toString("base64url")]) {
    const refusal = await client.refusal("tools/list", { cursor });
    expect(refusal.code).toBe(-32_602);
  }
  await gateway.call("DELETE", "/v1/connectors/big");
  await gateway.call("DELETE", "/v1/connectors/bigger");
  await big.close();
});

/** A token with `tools_mode: search` sees two tools, through which it reaches all others, with the same refusals. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger } from "../tasks/support.ts";
import { addConnector, type Client, connect } from "./support.ts";

let gateway: TestGateway;
let upstream: ScriptedMcp;
let client: Client;
beforeAll(async () => {
  gateway = await startGateway();
  upstream = startScriptedMcp([
    {
      name: "create_issue",
      description: "Opens an issue.",
      inputSchema: { type: "object", required: ["title"] },
    },
    { name: "delete_repository", description: "Deletes a repository with its issues." },
  ]);
  await addConnector(gateway, "github", upstream.url);
  await gateway.agent("narrow", { tools: ["github.create_*", "vault.*"] });
  const token = await gateway.token({
    agent: "narrow",
    tools_mode: "search",
    scopes: ["tools:*", "vault:read"],
  });
  client = await connect(gateway, { token });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

test("two tools are listed", async () => {
  expect(await client.toolNames()).toEqual(["call_tool", "find_tools"]);
});

test("the token is listed with its mode, other tokens without one", async () => {
  const { body } = await gateway.call("GET", "/v1/tokens");
  expect(body.data.map((token: { tools_mode?: string }) => token.tools_mode)).toEqual(["search", undefined]);
});

describe("finding", () => {
  test("returns only what the caller may use", async () => {
    const answer = await client.call("find_tools", { query: "issue of a repository" });
    expect(answer.structuredContent.tools).toEqual([
      {
        name: "github__create_issue",
        title: "github.create_issue",
        description: "Opens an issue.",
        input_schema: { type: "object", required: ["title"] },
      },
    ]);
    expect(answer.structuredContent.of).toBe(4);
    expect(JSON.parse(answer.content[0].text)).toEqual(answer.structuredContent);
    expect(JSON.stringify(answer)).not.toContain("delete_repository");
  });

  test.each([[{}], [{ query: "" }], [{ query: 1 }], [{ query: "x", limit: 0 }], [{ query: "x", more: 1 }]])(
    "with the arguments %j explains what is wrong with them",
    async (input) => {
      expect((await client.call("find_tools", input)).isError).toBe(true);
    },
  );

  test("is in the ledger", async () => {
    const { _meta } = await client.call("find_tools", { query: "issue" });
    const { body } = await gateway.call("GET", `/v1/ledger/${_meta["gatehouse/ledger"]}`);
    expect(body).toMatchObject({
      action: "tool.find",
      channel: "mcp",
      agent: "narrow",
      outcome: "succeeded",
    });
  });
});

describe("calling", () => {
  test.each([
    ["a tool that it may not use", "github__delete_repository", "tool_forbidden"],
    ["by its dotted name", "github.delete_repository", "tool_forbidden"],
    ["a tool that does not exist", "github__none", "unknown_tool"],
    ["itself", "call_tool", "unknown_tool"],
    ["an agent without tasks:write", "agents__narrow", "scope_missing"],
  ])("%s is refused as if called by its own name", async (_, name, code) => {
    const before = upstream.calls.length;
    const wrapped = await client.refusal("tools/call", { name: "call_tool", arguments: { name } });
    expect(wrapped.data.code).toBe(code);
    if (name !== "call_tool") {
      const own = await client.refusal("tools/call", { name, arguments: {} });
      expect(own.data.code).toBe(code);
    }
    expect(upstream.calls.length).toBe(before);
  });

  test("a tool answers as if called by its own name, and the ledger names it", async () => {
    const input = { title: "It rains" };
    const wrapped = await client.call("call_tool", { name: "github__create_issue", arguments: input });
    const own = await client.call("github__create_issue", input);
    expect(wrapped.content).toEqual(own.content);
    const calls = (await ledger(gateway)).filter(
      ({ action, phase }) => action === "tool.call" && phase === "intent",
    );
    expect(calls.map(({ tool }) => tool)).toEqual(["github.create_issue", "github.create_issue"]);
  });

  test.each([[{}], [{ name: "" }], [{ name: 1 }], [{ name: "x", arguments: [] }], [{ name: "x", more: 1 }]])(
    "with the arguments %j explains what is wrong with them",
    async (input) => {
      expect((await client.call("call_tool", input)).isError).toBe(true);
    },
  );
});

test("without the mode the two tools are unknown", async () => {
  const all = await connect(gateway);
  for (const name of ["find_tools", "call_tool"]) {
    expect((await all.refusal("tools/call", { name, arguments: {} })).data.code).toBe("unknown_tool");
  }
});

/**
 * Tool calls over REST, outside of tasks: the same as an MCP client's `tools/call`, with the same rights, limits and
 * evidence.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { CallAnswers } from "../../src/tasks/approvals/answers.ts";
import { addConnector, connect } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { type Entry, gate, ledger, openEvents, unsettled, until } from "../tasks/support.ts";

setDefaultTimeout(60_000);
const SECRET = "up-s3cret-0123456789abcdef";
const SEND = {
  name: "send",
  description: "Sends.",
  inputSchema: {
    type: "object",
    properties: { to: { type: "string" }, times: { type: "integer" } },
    required: ["to"],
  },
};

let gateway: TestGateway;
let upstream: ScriptedMcp;
let clock: FakeClock;
beforeEach(async () => {
  clock = new FakeClock();
  upstream = startScriptedMcp(["echo", SEND]);
  gateway = await startGateway({ clock, yaml: 'tools: { "up.send": 2 }\n' });
  const headers = { "X-Key": SECRET };
  const transport = { type: "http", url: upstream.url, headers };
  const body = { name: "up", kind: "mcp", transport };
  expect((await gateway.call("POST", "/v1/connectors", { body })).status).toBe(201);
});
afterEach(async () => {
  expect(unsettled(await ledger(gateway))).toEqual([]);
  await gateway.stop();
  await upstream.close();
});

function callTool(name: string, input?: unknown, token?: string): Promise<Answered> {
  return gateway.call("POST", `/v1/tools/${name}/call`, {
    ...(token === undefined ? {} : { token }),
    body: input === undefined ? {} : { arguments: input },
  });
}
const toolCalls = async () => (await ledger(gateway)).filter(({ action }) => action === "tool.call");
const refusal = ({ status, body }: Answered) => [status, body.code];

describe("a call is refused, recorded and sent nowhere", () => {
  afterEach(async () => {
    expect(upstream.calls).toEqual([]);
    expect((await toolCalls()).map(({ phase, outcome }) => [phase, outcome])).toEqual([["single", "denied"]]);
  });

  test.each([
    ["that does not exist", "up.none"],
    ["of no connector", "down.echo"],
    ["by its name over MCP", "up__echo"],
    ["that is an agent over MCP", "agents.clerk"],
    ["with an empty name", "%20"],
    ["with a very long name", "x".repeat(5_000)],
  ])("for a tool %s: 422 unknown_tool", async (_, name) => {
    expect(refusal(await callTool(name))).toEqual([422, "unknown_tool"]);
  });

  test("without a scope for it: 403 tool_forbidden, whatever the token's other scopes", async () => {
    const token = await gateway.token({ scopes: ["tasks:write", "connectors:write", "tools:up.send"] });
    expect(refusal(await callTool("up.echo", {}, token))).toEqual([403, "tool_forbidden"]);
  });

  test("if the token's agent may not use it: 403 tool_forbidden", async () => {
    await gateway.agent("clerk", { tools: ["up.send"] });
    const token = await gateway.token({ agent: "clerk", scopes: ["tools:*"] });
    expect(refusal(await callTool("up.echo", {}, token))).toEqual([403, "tool_forbidden"]);
  });

  test("if the agent or the workspace is stopped: 409", async () => {
    await gateway.agent("clerk");
    const token = await gateway.token({ agent: "clerk", scopes: ["tools:*"] });
    await gateway.call("POST", "/v1/agents/clerk/stop");
    expect(refusal(await callTool("up.echo", {}, token))).toEqual([409, "agent_stopped"]);
  });

  test("with invalid arguments: 422 that names each field", async () => {
    const answer = await callTool("up.send", { times: "often" });
    expect(refusal(answer)).toEqual([422, "validation_failed"]);
    expect(answer.body.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
      "/arguments/times",
      "/arguments/to",
    ]);
    const [entry] = await toolCalls();
    expect([entry?.code, entry?.seq]).toEqual([
      "invalid_arguments",
      Number(answer.headers.get("gatehouse-ledger")),
    ]);
  });

  test("if the budget is spent: 402", async () => {
    await gateway.agent("clerk", { budget: { credits_per_day: 0 }, approvals: [] });
    const token = await gateway.token({ agent: "clerk", scopes: ["tools:*"] });
    expect(refusal(await callTool("up.send", { to: "all" }, token))).toEqual([402, "credits_exhausted"]);
  });
});

test("an invalid body, or one with fields other than arguments, is 422 or 400, and nothing is sent", async () => {
  const path = "/v1/tools/up.echo/call";
  const cases: [raw: string, status: number, code: string][] = [
    ["{", 400, "invalid_json"],
    ['{"arguments":[1]}', 422, "validation_failed"],
    ['{"arguments":null}', 422, "validation_failed"],
    ['{"arguments":{},"task":"x"}', 422, "validation_failed"],
    ['{"arguments":"x"}', 422, "validation_failed"],
  ];
  for (const [raw, status, code] of cases) {
    expect([raw, ...refusal(await gateway.call("POST", path, { raw }))]).toEqual([raw, status, code]);
  }
  expect(upstream.calls).toEqual([]);
});

describe("the tool's answer", () => {
  test("is returned in MCP's format, and the arguments are passed on unchanged", async () => {
    const input = { deep: [{ a: 1, "": null }], "ä/~": "<script>" };
    upstream.answer(() => ({ content: [{ type: "text", text: "hi" }], structuredContent: { said: "hi" } }));
    const answer = await callTool("up.echo", input);
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        status: "succeeded",
        content: [{ type: "text", text: "hi" }],
        structured_content: { said: "hi" },
        duration_ms: expect.any(Number),
      },
    ]);
    expect(upstream.calls).toEqual([{ name: "echo", input }]);
    expect(answer.headers.get("ratelimit")).toStartWith('"requests";r=');
  });

  test("equals an MCP client's, with the same evidence apart from the channel", async () => {
    const client = await connect(gateway);
    const overMcp = await client.call("up__echo", { a: 1 });
    const { body, headers } = await callTool("up.echo", { a: 1 });
    expect(body.content).toEqual(overMcp.content);
    const entries: readonly (Entry & { readonly channel?: string })[] = await toolCalls();
    const told = entries.map(({ phase, outcome, tool, channel }) => [phase, outcome, tool, channel]);
    expect(told).toEqual([
      ["intent", "allowed", "up.echo", "mcp"],
      ["outcome", "succeeded", "up.echo", "mcp"],
      ["intent", "allowed", "up.echo", "rest"],
      ["outcome", "succeeded", "up.echo", "rest"],
    ]);
    expect(entries[2]?.seq).toBe(Number(headers.get("gatehouse-ledger")));
  });

  test("is `failed` if it reports an error, or if its connector cannot be reached", async () => {
    upstream.answer(() => ({ ...text(`no such key: ${SECRET}`), isError: true }));
    const said = await callTool("up.echo");
    expect([said.status, said.body.status]).toEqual([200, "failed"]);
    expect(said.body.content[0].text).toStartWith("no such key: ");
    expect(JSON.stringify(said.body)).not.toContain(SECRET);
    await upstream.close();
    const lost = await callTool("up.echo");
    expect([lost.status, lost.body]).toMatchObject([200, { status: "failed", structured_content: null }]);
    expect(lost.body.content[0].text).not.toBe("");
  });

  test("needs no body if the tool needs no arguments", async () => {
    const token = await gateway.token({ scopes: ["tools:time.*"] });
    const answer = await gateway.call("POST", "/v1/tools/time.now/call", { token });
    expect([answer.status, answer.body.status]).toEqual([200, "succeeded"]);
    expect(answer.body.structured_content.now).toBe(new Date(clock.now()).toISOString());
  });

  test("is charged", async () => {
    await gateway.agent("clerk", { budget: { credits_per_day: 2 } });
    const token = await gateway.token({ agent: "clerk", scopes: ["tools:*"] });
    expect((await callTool("up.send", { to: "all" }, token)).body.status).toBe("succeeded");
    expect((await toolCalls()).at(-1)).toMatchObject({ phase: "outcome", credits: 2_000_000 });
    expect(refusal(await callTool("up.send", { to: "all" }, token))).toEqual([402, "credits_exhausted"]);
  });
});

test("beyond the request limit a call is 429, and not sent", async () => {
  const limits = { requests_per_minute: 3, enforcement: "enforced" };
  await gateway.call("PATCH", "/v1/workspace", { body: { limits } });
  const statuses: number[] = [];
  for (let made = 0; made < 6; made++) statuses.push((await callTool("up.echo")).status);
  expect(statuses.at(-1)).toBe(429);
  expect(upstream.calls).toHaveLength(statuses.filter((status) => status === 200).length);
  clock.advance(60_000);
});

test("a client that leaves ends its call: the upstream is notified, and it is recorded as cancelled", async () => {
  const begun = gate();
  upstream.answer(() => {
    begun.open();
    return new Promise(() => {});
  });
  const abort = new AbortController();
  const left = fetch(`${gateway.url}/v1/tools/up.echo/call`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.admin}` },
    signal: abort.signal,
  });
  await begun.opened;
  abort.abort();
  await expect(left).rejects.toThrow();
  await until(() => upstream.heard.includes("notifications/cancelled"));
  await until(async () => unsettled(await toolCalls()).length === 0);
  expect((await toolCalls()).at(-1)).toMatchObject({ phase: "outcome", outcome: "cancelled", code: null });
});

describe("a call that needs a person's approval", () => {
  let token: string;
  beforeEach(async () => {
    await gateway.agent("careful", { approvals: ["up.send"] });
    token = await gateway.token({ agent: "careful" });
  });

  async function ask() {
    const answer = await callTool("up.send", { to: "all" }, token);
    expect([answer.status, answer.body]).toEqual([
      202,
      { task: expect.stringMatching(/^task_/), status: "awaiting_approval" },
    ]);
    const { task } = answer.body;
    expect(answer.headers.get("location")).toBe(`/v1/tasks/${task}`);
    // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
    let found: any;
    await until(async () => {
      [found] = (await gateway.call("GET", "/v1/approvals")).body.data;
      return found !== undefined;
    });
    expect(found).toMatchObject({ task, tool: "up.send", arguments: { to: "all" } });
    expect(upstream.calls).toEqual([]);
    return { task: `/v1/tasks/${task}`, id: task, path: `/v1/tasks/${task}/approvals/${found.call_id}` };
  }

  test("is not made if it is denied", async () => {
    const { task, path } = await ask();
    await gateway.call("POST", path, { body: { decision: "deny", reason: "not on Sundays" } });
    await until(async () => (await gateway.call("GET", task, { token })).body.status === "cancelled");
    expect(upstream.calls).toEqual([]);
  });

  test("does not wait, and its answer is its task's once it is approved", async () => {
    const left = spyOn(CallAnswers.prototype, "leave");
    const { id, task, path } = await ask();
    // Otherwise, nobody would ever collect the answer that is kept for the waiting caller.
    expect(left).toHaveBeenCalledWith(id);
    left.mockRestore();
    await gateway.call("POST", path, { body: { decision: "approve" } });
    await (await openEvents(gateway, id)).text();
    expect((await gateway.call("GET", task, { token })).body).toMatchObject({
      status: "succeeded",
      output: 'send {"to":"all"}',
      credits_consumed: 2,
    });
    expect(upstream.calls).toHaveLength(1);
  });
});

test("another workspace's tool is unknown", async () => {
  const other = await gateway.workspace("other");
  expect(refusal(await callTool("up.echo", {}, other))).toEqual([422, "unknown_tool"]);
  await addConnector(gateway, "up", upstream.url, { token: other });
  expect((await callTool("up.echo", {}, other)).body.status).toBe("succeeded");
  expect(await toolCalls()).toEqual([]);
});

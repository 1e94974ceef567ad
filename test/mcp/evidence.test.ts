/** What the ledger records of calls over MCP, and what happens if it cannot be written. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { fileStore, type LastingStore } from "../support/lasting-store.ts";
import { ownConnection } from "../support/own-connection.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { write } from "../support/vault.ts";
import { type Entry, ledger, unsettled, until } from "../tasks/support.ts";
import { addConnector, connect, hello, post, request } from "./support.ts";

let gateway: TestGateway;
let upstream: ScriptedMcp;
beforeEach(async () => {
  upstream = startScriptedMcp(["echo"]);
  gateway = await startGateway();
  await prepare();
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
});

async function prepare(): Promise<void> {
  await addConnector(gateway, "up", upstream.url);
  await gateway.agent("plain");
}

interface McpEntry extends Entry {
  readonly channel: string;
  readonly input_hash: string | null;
  readonly output_hash: string | null;
  readonly request_id: string;
}

const byMcp = async () =>
  (await ledger(gateway)).filter((entry) => (entry as McpEntry).channel === "mcp") as McpEntry[];

test("each request has its entries, by the token, with the channel mcp", async () => {
  const issued = await gateway.call("POST", "/v1/tokens", { body: { name: "t", agent: "plain" } });
  const { id } = await write(gateway, { text: "A text." });
  const client = await connect(gateway, { token: issued.body.secret });
  await client.ask("ping");
  await client.ask("tools/list");
  await client.call("up__echo", { text: "hi" });
  await client.ask("resources/list");
  await client.ask("resources/read", { uri: `vault://${id}` });
  await client.call("agents__plain", { prompt: "hi" });
  await client.end();
  const entries = await byMcp();
  expect(entries.map(({ action, phase, outcome }) => `${action} ${phase} ${outcome}`)).toEqual([
    "session.open single succeeded",
    "tool.list single succeeded",
    "tool.call intent allowed",
    "tool.call outcome succeeded",
    "vault.list single succeeded",
    "vault.read single succeeded",
    "task.dispatch intent allowed",
    "session.close single succeeded",
  ]);
  for (const entry of entries) {
    expect(entry).toMatchObject({ actor: `token:${issued.body.id}`, agent: "plain", channel: "mcp" });
    expect(entry.request_id).toStartWith("req_");
  }
  expect(entries[0]?.detail).toEqual({ protocol: "2025-11-25", client: "tests 1" });
});

test("a call's outcome refers to its intent, with input and output only as hashes", async () => {
  const client = await connect(gateway);
  upstream.answer(() => text("the answer is Zanzibar"));
  const answer = await client.call("up__echo", { question: "where is Zanzibar" });
  const [intent, outcome] = (await byMcp()).filter(({ action }) => action === "tool.call");
  expect(intent).toMatchObject({ phase: "intent", tool: "up.echo", output_hash: null });
  expect(outcome).toMatchObject({ phase: "outcome", tool: "up.echo", input_hash: null });
  expect(outcome?.ref).toBe(intent?.seq);
  expect(answer._meta["gatehouse/ledger"]).toBe(intent?.seq);
  expect(outcome?.detail?.duration_ms).toBeNumber();
  for (const hash of [intent?.input_hash, outcome?.output_hash]) expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(JSON.stringify(await ledger(gateway))).not.toContain("Zanzibar");
});

test.each([
  [
    "the tool's own failure",
    { isError: true, content: [{ type: "text", text: "no" }] },
    "failed",
    "tool_error",
  ],
  ["an invalid answer", { content: "no list" }, "failed", "invalid_answer"],
])("%s is an outcome, and an answer for the model", async (_, result, outcome, code) => {
  upstream.answer(() => result);
  const client = await connect(gateway);
  expect((await client.call("up__echo")).isError).toBe(true);
  expect((await byMcp()).at(-1)).toMatchObject({ action: "tool.call", phase: "outcome", outcome, code });
});

test("a lost upstream is recorded as an outcome, and the connector is shown as unreachable", async () => {
  await upstream.close();
  const client = await connect(gateway);
  const answer = await client.call("up__echo");
  expect(answer.isError).toBe(true);
  expect(answer.content[0].text).toContain("up");
  expect((await byMcp()).at(-1)).toMatchObject({ phase: "outcome", outcome: "failed", code: "unreachable" });
  const { body } = await gateway.call("GET", "/v1/connectors");
  const shown = body.data.find(({ name }: { name: string }) => name === "up");
  expect([shown.status, typeof shown.error]).toEqual(["unreachable", "string"]);
});

test("invalid arguments are denied, and recorded as a hash", async () => {
  upstream.list([{ name: "echo", inputSchema: { type: "object", required: ["text"] } }]);
  await gateway.call("POST", "/v1/connectors/up/refresh");
  const client = await connect(gateway);
  await client.call("up__echo", {});
  const last = (await byMcp()).at(-1);
  expect(last).toMatchObject({
    phase: "single",
    outcome: "denied",
    code: "invalid_arguments",
    tool: "up.echo",
  });
  expect(last?.input_hash).toMatch(/^[0-9a-f]{64}$/);
});

test("a name from a client is not recorded if it is not a tool's name, or looks like a secret", async () => {
  const client = await connect(gateway);
  const secret = await gateway.token({ scopes: ["tasks:read"] });
  for (const name of [secret, `up.${secret}`, "two words", "x".repeat(500), "<script>"]) {
    await client.refusal("tools/call", { name });
  }
  const params = { protocolVersion: "1", capabilities: {}, clientInfo: { name: secret, version: secret } };
  await post(gateway, request("initialize", params));
  const entries = await ledger(gateway);
  expect(entries.filter(({ code }) => code === "unknown_tool").map(({ tool }) => tool)).toEqual(
    Array(5).fill(null),
  );
  expect(JSON.stringify(entries)).not.toContain(secret);
});

describe("if the ledger cannot be written", () => {
  // Its file is what can be full.
  let store: LastingStore;
  let file: Database;
  beforeEach(async () => {
    await gateway.stop();
    store = fileStore();
    gateway = await startGateway(store.options);
    await prepare();
    file = ownConnection(gateway.dataDir);
  });
  afterEach(() => store.remove());

  /** To the store, a refusing trigger looks like a full disk. */
  const fill = () =>
    file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
  const empty = () => file.run("DROP TRIGGER full");

  test("nothing is dispatched, listed or opened, and each answer gives the reason", async () => {
    const client = await connect(gateway);
    const { id } = await write(gateway, { text: "A text." });
    fill();
    for (const [method, params] of [
      ["tools/call", { name: "up__echo", arguments: {} }],
      ["tools/call", { name: "agents__plain", arguments: { prompt: "hi" } }],
      ["tools/list", {}],
      ["resources/list", {}],
      ["resources/read", { uri: `vault://${id}` }],
    ] as const) {
      const refusal = await client.refusal(method, params);
      expect([method, refusal.code, refusal.data.code]).toEqual([method, -32_004, "ledger_unavailable"]);
    }
    const hi = await post(gateway, hello());
    expect([hi.status, hi.last.code, hi.headers.get("retry-after")]).toEqual([
      503,
      "ledger_unavailable",
      "5",
    ]);
    expect(hi.headers.get("mcp-session-id")).toBeNull();
    const { body } = await gateway.call("GET", "/metrics");
    expect(body).toContain("gatehouse_mcp_sessions 1\n");
    expect(upstream.calls).toEqual([]);
    empty();
    expect((await client.call("up__echo", {})).content[0].text).toBe("echo {}");
    expect((await gateway.call("GET", "/v1/tasks")).body.data).toEqual([]);
  });

  test("before an outcome, the answer reports that and that the call was made; it is recorded once there is room", async () => {
    const gate = Promise.withResolvers<object>();
    upstream.answer(() => gate.promise);
    const client = await connect(gateway);
    const refused = client.refusal("tools/call", { name: "up__echo", arguments: {} });
    await until(() => upstream.calls.length === 1);
    fill();
    gate.resolve(text("done"));
    const refusal = await refused;
    expect(refusal.data.code).toBe("ledger_unavailable");
    expect(refusal.message).not.toContain("nothing was done");
    empty();
    const { admin } = gateway;
    await gateway.gateway.stop();
    const again = await startGateway(store.options);
    const entries = await ledger(again, admin);
    expect(unsettled(entries)).toEqual([]);
    const outcome = entries.find(({ action, phase }) => action === "tool.call" && phase === "outcome");
    expect(outcome).toMatchObject({
      ...{ outcome: "succeeded", tool: "up.echo" },
      detail: { late_ms: expect.any(Number) },
    });
    await again.gateway.stop();
    gateway = await startGateway();
  });
});

/**
 * The server is killed during a call that a client made directly over MCP. The outcome is recorded once as unknown,
 * the call is not repeated, and the ledger verifies. `test/mcp/killed.test.ts` covers what happens to the session.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { chainFaults } from "../ledger/support.ts";
import { BOTH, hello, request } from "../mcp/support.ts";
import { run, type ServerProcess, serve, tempDir } from "../support/process.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../support/until.ts";
import { readFile, unsettled } from "./support.ts";

setDefaultTimeout(120_000);

const admin = createSecret(systemRandom);
let directory: ReturnType<typeof tempDir>;
let data: string;
let upstream: ScriptedMcp;
let server: ServerProcess;

const options = () => ({ cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: admin } });

beforeEach(async () => {
  directory = tempDir();
  data = join(directory.path, "gatehouse-data");
  mkdirSync(data, { mode: 0o700 });
  upstream = startScriptedMcp(["send"]);
  upstream.answer(() => new Promise(() => {}));
  server = await serve([], options());
  const transport = { type: "http", url: upstream.url };
  expect((await call("POST", "/v1/connectors", { name: "up", kind: "mcp", transport })).status).toBe(201);
});
afterEach(async () => {
  await server.end("SIGKILL");
  await upstream.close();
  directory.remove();
});

async function call(method: string, path: string, body?: object) {
  const answer = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  return { status: answer.status, body: (await answer.json()) as any };
}

/** Calls the tool in a separate session. The answer ends when the process dies. */
async function callTool(token: string): Promise<{ readonly out: Promise<string> }> {
  const post = (body: object, headers: Record<string, string> = {}) =>
    fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: BOTH,
        ...headers,
      },
      body: JSON.stringify(body),
    });
  const hi = await post(hello());
  await hi.text();
  const session = { "mcp-session-id": hi.headers.get("mcp-session-id") ?? "" };
  const out = post(request("tools/call", { name: "up__send", arguments: { to: "all" } }), session);
  return { out: out.then((response) => response.text()).catch(() => "") };
}

/** Kills the process and starts another, twice. The second start sees what the first one recorded. */
async function killTwice(): Promise<void> {
  for (let times = 0; times < 2; times++) {
    await server.end("SIGKILL");
    server = await serve([], options());
  }
}

async function endOfCalls() {
  expect(await server.end("SIGTERM")).toBe(0);
  const { entries, rows } = readFile(join(data, "gatehouse.db"));
  expect(unsettled(entries)).toEqual([]);
  expect(chainFaults(rows)).toEqual([]);
  const verified = await run(["ledger", "verify", "--data", data], options());
  expect(`${verified.code} ${verified.stderr}`).toBe("0 ");
  return entries.filter(({ action, phase }) => action === "tool.call" && phase !== "single");
}

test("a killed call without an approval is recorded as unknown, and not made again", async () => {
  const { out } = await callTool(admin);
  await until(() => upstream.calls.length === 1);
  await killTwice();
  await out;
  expect(await endOfCalls()).toMatchObject([
    { phase: "intent", outcome: "allowed" },
    { phase: "outcome", outcome: "failed", code: "unknown" },
  ]);
  expect(upstream.calls).toHaveLength(1);
});

test("a killed call with an approval is recorded as unknown, and so is the error of its task", async () => {
  const agent = { name: "careful", owner: "tests", memory_scope: "a", approvals: ["up.*"] };
  expect((await call("POST", "/v1/agents", agent)).status).toBe(201);
  const token = (await call("POST", "/v1/tokens", { name: "t", agent: "careful" })).body.secret;
  const { out } = await callTool(token);
  const pending = async () => (await call("GET", "/v1/approvals")).body.data;
  await until(async () => (await pending()).length === 1);
  const [asked] = await pending();
  const path = `/v1/tasks/${asked.task}/approvals/${asked.call_id}`;
  expect((await call("POST", path, { decision: "approve" })).status).toBe(200);
  await until(() => upstream.calls.length === 1);
  await killTwice();
  await out;
  const read = async () => (await call("GET", `/v1/tasks/${asked.task}`)).body;
  await until(async () => (await read()).finished_at !== null);
  const task = await read();
  expect(task).toMatchObject({
    status: "failed",
    error: { code: "interrupted" },
    tools_called: [{ tool: "up.send", status: "unknown" }],
  });
  expect(task.error.message).toContain("It was not repeated.");
  expect(await endOfCalls()).toMatchObject([
    { phase: "intent", outcome: "allowed" },
    { phase: "outcome", outcome: "failed", code: "interrupted" },
  ]);
  expect(upstream.calls).toHaveLength(1);
});

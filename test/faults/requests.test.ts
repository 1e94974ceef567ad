/**
 * A server whose running tasks all hang in their models: as many tasks as a node runs, and as many requests as Bun
 * sends by default.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readRuntime } from "../../src/store/runtime.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { type ServerProcess, serve, tempDir } from "../support/process.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../tasks/support.ts";

setDefaultTimeout(120_000);

/** How many tasks a node runs by default. */
const RUNNING = 256;

let directory: ReturnType<typeof tempDir>;
let models: FakeModel;
let tools: ScriptedMcp;
let server: ServerProcess | undefined;

beforeEach(() => {
  directory = tempDir();
  models = startFakeModel();
  tools = startScriptedMcp(["echo"]);
  models.script("a", { hang: true });
});
afterEach(async () => {
  await server?.end("SIGKILL");
  await models.close();
  await tools.close();
  directory.remove();
});

async function call(method: string, path: string, token: string, body?: object, headers = {}) {
  const response = await fetch(`${server?.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

/**
 * Creates a workspace with an agent.
 * @returns the secret of an admin token of it
 */
async function workspace(name: string, operator: string): Promise<string> {
  const headers = { "gatehouse-operator": "tests" };
  await call("POST", "/operator/workspaces", operator, { name }, headers);
  const inside = { ...headers, "gatehouse-workspace": name };
  const { secret } = await call("POST", "/v1/tokens", operator, { name: "t", scopes: ["admin"] }, inside);
  await call("POST", "/v1/agents", String(secret), { name: "worker", owner: "tests", memory_scope: "/" });
  return String(secret);
}

test("other workspaces' tool calls are served while 256 tasks hang", async () => {
  const data = join(directory.path, "data");
  const config = join(directory.path, "gatehouse.yaml");
  writeFileSync(
    config,
    `providers: { up: { kind: openai-compatible, base_url: "${models.url}" } }\ntiers: { 1: { models: [up/a] } }\n`,
  );
  server = await serve(["--data", data, "--config", config], { cwd: directory.path });
  const operator = readRuntime(data)?.secret ?? "";
  const busy = await workspace("busy", operator);
  const calm = await workspace("calm", operator);
  const transport = { type: "http", url: tools.url };
  await call("POST", "/v1/connectors", calm, { name: "up", kind: "mcp", transport });
  for (let number = 0; number < RUNNING + 10; number++) {
    await call("POST", "/v1/tasks", busy, { agent: "worker", prompt: "hi" });
  }
  await until(() => models.requests.length === RUNNING);
  const echo = await call("POST", "/v1/tools/up.echo/call", calm, { arguments: { text: "here" } });
  expect(echo).toMatchObject({ status: "succeeded" });
  expect(models.requests.filter(({ aborted }) => aborted)).toEqual([]);
});

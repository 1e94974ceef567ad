/** Clients that wait for a task to end: how many may wait, and what they are told when the process stops. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WAITS_PER_WORKSPACE } from "../../src/mcp/waits.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../support/until.ts";
import { ledger, yamlOf } from "../tasks/support.ts";
import { addConnector, connect, messagesOf, request, watch } from "./support.ts";

setDefaultTimeout(60_000);

const BATCH = 100;

let dataDir: string;
let upstream: FakeModel;
let tools: ScriptedMcp;
let gateway: TestGateway;
let yaml: string;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-waits-"));
  upstream = startFakeModel();
  upstream.script("a", { hang: true });
  tools = startScriptedMcp(["send"]);
  // One task runs and the others are queued. Bun makes 256 requests at once in a process, and this process is the
  // client's too.
  yaml = yamlOf(upstream.url, {
    tiers: { 1: ["a"] },
    limits: { concurrent_tasks: 1, enforcement: "enforced" },
  });
  gateway = await startGateway({ yaml, dataDir });
  await addConnector(gateway, "up", tools.url);
  await gateway.agent("plain");
  await gateway.agent("careful", { approvals: ["up.*"] });
});
afterEach(async () => {
  await gateway.stop();
  await tools.close();
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const ASK_AGENT = { name: "agents__plain", arguments: { prompt: "hi" } };

const dispatched = async () =>
  (await ledger(gateway)).filter(({ action, phase }) => action === "task.dispatch" && phase === "intent")
    .length;

test("beyond 1,000 in a workspace no agent gets another task, but another workspace's clients may wait", async () => {
  const client = await connect(gateway, { version: "2025-03-26" });
  const out: Promise<unknown>[] = [];
  for (let sent = 0; sent < WAITS_PER_WORKSPACE; sent += BATCH) {
    const batch = Array.from({ length: BATCH }, () => request("tools/call", ASK_AGENT));
    out.push(client.open(batch).then((response) => response.text()));
  }
  await until(async () => (await dispatched()) >= WAITS_PER_WORKSPACE);
  const refusal = await client.refusal("tools/call", ASK_AGENT);
  expect(refusal).toMatchObject({ code: -32_029, data: { code: "rate_limited" } });
  expect(refusal.message).toContain("1000 calls that wait for tasks.");
  expect(await dispatched()).toBe(WAITS_PER_WORKSPACE);

  // A call that needs a person's approval gets its task before anybody waits for it, and names it.
  const careful = await connect(gateway, { token: await gateway.token({ agent: "careful" }) });
  const alone = await careful.refusal("tools/call", { name: "up__send", arguments: {} });
  expect([alone.code, alone.data.code]).toEqual([-32_029, "rate_limited"]);
  expect(alone.message).toContain(`continues as the task ${alone.data.task}`);
  const task = await gateway.call("GET", `/v1/tasks/${alone.data.task}`);
  expect(["queued", "running", "awaiting_approval"]).toContain(task.body.status);

  const token = await gateway.workspace("other");
  const agent = { name: "plain", owner: "tests", memory_scope: "support" };
  expect((await gateway.call("POST", "/v1/agents", { token, body: agent })).status).toBe(201);
  const other = await connect(gateway, { token });
  const waits = watch(await other.open(request("tools/call", ASK_AGENT)));
  const running = async () => (await gateway.call("GET", "/v1/tasks", { token })).body.data.length;
  await until(async () => (await running()) === 1);
  waits.leave();

  expect((await gateway.call("POST", "/v1/agents/plain/stop")).status).toBe(200);
  await Promise.all(out);
  await gateway.call("POST", "/v1/agents/plain/resume");
  upstream.script("a", { chunks: ["there is room"] });
  expect((await client.call("agents__plain", { prompt: "hi" })).content[0].text).toBe("there is room");
});

test("a client waiting for an agent when the process stops is told so, with the task that continues", async () => {
  const { admin } = gateway;
  const client = await connect(gateway);
  const stream = watch(await client.open(request("tools/call", ASK_AGENT)));
  await until(() => upstream.requests.length === 1);
  const [{ id }] = (await gateway.call("GET", "/v1/tasks")).body.data;
  await gateway.stop();
  await stream.ended;
  const answer = messagesOf(stream.text()).at(-1);
  expect(answer.error).toMatchObject({ data: { code: "draining", task: id } });
  expect(answer.error.message).toContain(`The task ${id} continues when it starts again`);

  upstream.script("a", { chunks: ["at last"] });
  gateway = await startGateway({ yaml, dataDir });
  const read = async () => (await gateway.call("GET", `/v1/tasks/${id}`, { token: admin })).body;
  await until(async () => (await read()).finished_at !== null);
  expect(await read()).toMatchObject({ status: "succeeded", output: "at last" });
});

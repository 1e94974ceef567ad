/** Calls in flight when the process dies are charged once, and nothing stays reserved. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addConnector, connect } from "../../mcp/support.ts";
import { type FakeModel, startFakeModel } from "../../support/fake-model.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../../support/scripted-mcp.ts";
import { dispatch, ended, held, ledger, unsettled, until, yamlOf } from "../support.ts";
import { reservations, spent, worth } from "./support.ts";

setDefaultTimeout(60_000);

const CREDIT = 1_000_000;

let model: FakeModel;
let upstream: ScriptedMcp;
let gateway: TestGateway;
let yaml: string;
let directories: string[];
beforeEach(async () => {
  model = startFakeModel();
  upstream = startScriptedMcp(["paid"]);
  upstream.answer(() => new Promise(() => {}));
  // The prompt's four tokens cost 4 thousandths of a credit, and an answer is expected to cost a credit.
  const prices = { a: [1, 1] } as const;
  yaml = yamlOf(model.url, { tiers: { 1: ["a"], 2: ["free"] }, prices, more: 'tools: { "up.paid": 0.25 }' });
  directories = [directory()];
  gateway = await startGateway({ yaml, dataDir: directories[0] ?? "", isOnFiles: true });
  await addConnector(gateway, "up", upstream.url);
});
afterEach(async () => {
  await gateway.stop();
  await model.close();
  await upstream.close();
  for (const each of directories) rmSync(each, { recursive: true, force: true });
});

function directory(): string {
  return mkdtempSync(join(tmpdir(), "gatehouse-budget-"));
}

/** Starts another process with exactly what is on disk at this moment: a copy of the files. */
async function crash(): Promise<void> {
  const copy = directory();
  cpSync(directories.at(-1) ?? "", copy, { recursive: true });
  directories.push(copy);
  await gateway.stop();
  gateway = await startGateway({ yaml, dataDir: copy, isOnFiles: true });
}

test("a model call interrupted by a crash is charged what was expected, with or without a budget", async () => {
  await gateway.agent("budgeted", { budget: { credits_per_day: 3 } });
  await gateway.agent("unlimited");
  const holds = [held(), held()];
  let asked = 0;
  model.script("a", (request, call) => {
    const { script } = holds[asked++] ?? { script: worth(1_000) };
    return typeof script === "function" ? script(request, call) : script;
  });
  const first = await dispatch(gateway, { agent: "budgeted", prompt: "x".repeat(16) });
  await holds[0]?.asked;
  const second = await dispatch(gateway, { agent: "unlimited", prompt: "x".repeat(16) });
  await holds[1]?.asked;
  expect(await reservations(gateway)).toBe(1);
  await crash();
  const task = await ended(gateway, first);
  expect(task).toMatchObject({ status: "succeeded", credits_consumed: 2.296 });
  expect(await ended(gateway, second)).toMatchObject({ status: "succeeded", credits_consumed: 2.296 });
  const lost = (await ledger(gateway)).filter(({ code }) => code === "interrupted");
  expect(lost.map(({ action, credits, detail }) => [action, credits ?? 0, detail?.usage ?? "none"])).toEqual([
    ["model.call", 1_296_000, "estimated"],
    ["model.call", 1_296_000, "estimated"],
  ]);
  expect(await reservations(gateway)).toBe(0);
  expect(await spent(gateway)).toBe(4_592_000);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("charges made after a crash count against the budget: a resumed task is refused once the budget is spent", async () => {
  await gateway.agent("budgeted", { budget: { credits_per_day: 1 } });
  const hold = held();
  model.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "budgeted" });
  await hold.asked;
  await crash();
  const task = await ended(gateway, id);
  expect(task).toMatchObject({ status: "failed", error: { code: "credits_exhausted" } });
  expect(task.credits_consumed).toBe(1.289);
  expect(await spent(gateway)).toBe(1_289_000);
  const told = (await ledger(gateway)).filter(({ action }) => action === "limit.exceeded");
  expect(told).toHaveLength(1);
});

test("a tool call in flight is charged its price once, in a task and over MCP, no matter how many crashes follow", async () => {
  await gateway.agent("clerk", { budget: { credits_per_day: 10 } });
  model.script("free", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: ["done"] }
      : { toolCalls: [{ name: "up__paid", arguments: {} }] },
  );
  const id = await dispatch(gateway, { agent: "clerk", tier: 2, tools: ["up.paid"] });
  await until(() => upstream.calls.length === 1);
  const clients = [
    await connect(gateway, { token: await gateway.token({ agent: "clerk" }) }),
    await connect(gateway, { token: await gateway.token({ scopes: ["tools:*"] }) }),
  ];
  for (const client of clients) void client.call("up__paid").catch(() => {});
  await until(() => upstream.calls.length === 3);
  await crash();
  await crash();
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", credits_consumed: 0.25 });
  expect(upstream.calls).toHaveLength(3);
  expect(await spent(gateway)).toBe(0.75 * CREDIT);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("an approved call that is waiting for budget when the gateway stops is made after the restart", async () => {
  await gateway.agent("clerk", { approvals: ["up.paid"], budget: { credits_per_day: 1 } });
  const client = await connect(gateway, { token: await gateway.token({ agent: "clerk" }) });
  void client.call("up__paid").catch(() => {});
  let asked: { task: string; call_id: string } | undefined;
  await until(async () => {
    [asked] = (await gateway.call("GET", "/v1/approvals")).body.data;
    return asked !== undefined;
  });
  const hold = held();
  model.script("a", hold.script);
  const out = await dispatch(gateway, { agent: "clerk" });
  await hold.asked;
  const path = `/v1/tasks/${asked?.task}/approvals/${asked?.call_id}`;
  expect((await gateway.call("POST", path, { body: { decision: "approve" } })).status).toBe(200);
  await until(async () => (await gateway.call("GET", "/v1/workspace")).body.usage.tasks_running === 2);
  // At this point, the approved call has checked its budget, because each of these requests passes through the store.
  for (let turn = 0; turn < 20; turn++) await gateway.call("GET", "/v1/agents");
  await gateway.stop();
  expect(upstream.calls).toHaveLength(0);
  upstream.answer(() => ({ content: [{ type: "text", text: "done" }] }));
  model.script("a", worth(100));
  gateway = await startGateway({ yaml, dataDir: directories.at(-1) ?? "", isOnFiles: true });
  const task = await ended(gateway, asked?.task ?? "");
  expect(task).toMatchObject({ status: "succeeded", output: "done", credits_consumed: 0.25 });
  expect((await ended(gateway, out)).status).toBe("succeeded");
  expect(upstream.calls).toHaveLength(1);
  expect(await reservations(gateway)).toBe(0);
  await spent(gateway);
});

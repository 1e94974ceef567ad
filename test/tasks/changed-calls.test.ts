/**
 * Changes to the rows of a task's calls by a person with the file, but without the keys, have no effect after a
 * restart.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { VerificationFinding } from "../../src/ledger/proof/verification.ts";
import { databasePath } from "../../src/store/directory.ts";
import { allFindings, verify } from "../ledger/verify/scene.ts";
import { addConnector, connect } from "../mcp/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { spent } from "./budgets/support.ts";
import { dispatch, ended, held, ledger, unsettled, until, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

const CREDIT = 1_000_000;

let model: FakeModel;
let upstream: ScriptedMcp;
let gateway: TestGateway;
let yaml: string;
let directories: string[];
/** The findings of `ledger verify` in the changed files, before the server starts on them. */
let found: readonly VerificationFinding[];
beforeEach(async () => {
  model = startFakeModel();
  upstream = startScriptedMcp(["pay", "free"]);
  yaml = yamlOf(model.url, {
    tiers: { 1: ["a"] },
    prices: { a: [1, 1] },
    more: 'tools: { "up.pay": 0.25 }',
  });
  directories = [directory()];
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: directories[0] ?? "" });
  await addConnector(gateway, "up", upstream.url);
  await gateway.agent("clerk", { budget: { credits_per_day: 1_000 } });
  await gateway.agent("boss", { budget: { credits_per_day: 1_000 } });
});
afterEach(async () => {
  await gateway.stop();
  await model.close();
  await upstream.close();
  for (const each of directories) rmSync(each, { recursive: true, force: true });
});

const directory = () => mkdtempSync(join(tmpdir(), "gatehouse-calls-"));

/** A start on a copy of the files as they are now, after somebody has changed them. */
async function crash(change: (file: Database) => void): Promise<void> {
  const next = directory();
  cpSync(gateway.dataDir, next, { recursive: true });
  directories.push(next);
  await gateway.stop();
  const file = new Database(databasePath(next));
  file.exec("PRAGMA foreign_keys = OFF");
  change(file);
  file.close();
  found = allFindings(await verify(databasePath(next)));
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: next });
}

/** The findings of `ledger verify` beside the running gateway. */
const foundNow = async () => allFindings(await verify(databasePath(gateway.dataDir)));

/** The agents whose budgets have been charged. */
function payers(): readonly (string | null)[] {
  const file = new Database(databasePath(gateway.dataDir), { readonly: true });
  const sql =
    "SELECT a.name FROM spending AS s LEFT JOIN agents AS a ON a.id = s.agent_id WHERE s.credits > 0";
  const rows = file.query<{ name: string | null }, []>(sql).all();
  file.close();
  return rows.map(({ name }) => name);
}

const named = async () =>
  (await ledger(gateway)).filter(({ action }) => action === "store.row_changed").map(({ detail }) => detail);

/** A task whose calls are made, and whose model is asked for the answer that follows them. */
async function called(
  calls: readonly string[] = ["up__pay", "up__free"],
): Promise<{ id: string; open(): void }> {
  const next = held();
  let asked = 0;
  model.script("a", (request, call) =>
    asked++ === 0
      ? { chunks: [], toolCalls: calls.map((name) => ({ name, arguments: {} })) as never }
      : typeof next.script === "function"
        ? next.script(request, call)
        : next.script,
  );
  const id = await dispatch(gateway, { agent: "clerk", tools: ["up.pay", "up.free"] });
  await next.asked;
  return { id, open: next.open };
}

describe("a tool call is not made again after a restart, and its task ends as failed, if someone", () => {
  test.each<[string, string]>([
    ["has renamed it", "UPDATE tool_calls SET id = 'call_x' WHERE tool = 'up.pay'"],
    ["has renamed all of them", "UPDATE tool_calls SET id = id || 'x'"],
    ["has deleted its row", "DELETE FROM tool_calls WHERE tool = 'up.pay'"],
    ["has deleted all rows", "DELETE FROM tool_calls"],
    ["has deleted the rows and the answer", "DELETE FROM tool_calls; DELETE FROM task_answers"],
    ["has deleted the answer", "DELETE FROM task_answers"],
    ["has removed its result", "UPDATE tool_calls SET outcome_seq = NULL WHERE tool = 'up.pay'"],
    [
      "has given it another one's result",
      `UPDATE tool_calls SET outcome_seq = (SELECT c.outcome_seq FROM tool_calls AS c WHERE c.tool = 'up.free')
       WHERE tool = 'up.pay'`,
    ],
    ["has changed its status", "UPDATE tool_calls SET status = 'denied' WHERE tool = 'up.pay'"],
    ["has changed its tool", "UPDATE tool_calls SET tool = 'up.free' WHERE tool = 'up.pay'"],
    ["has changed its price", "UPDATE tool_calls SET price = 1 WHERE tool = 'up.pay'"],
    [
      "has added a row",
      `INSERT INTO tool_calls SELECT workspace_id, task_id, 9, 'call_y', tool, status, intent_seq, started_at, duration_ms,
       outcome_seq, price FROM tool_calls WHERE tool = 'up.pay'`,
    ],
  ])("%s", async (_, sql) => {
    const { id, open } = await called();
    await crash((file) => file.exec(sql));
    open();
    const task = await ended(gateway, id);
    expect(task).toMatchObject({ status: "failed", error: { code: "internal" } });
    expect(upstream.calls.map(({ name }) => name)).toEqual(["pay", "free"]);
    expect(await named()).toEqual([{ table: "tasks", row: `1/${id}` }]);
    expect(unsettled(await ledger(gateway))).toEqual([]);
    // The rows are restored from the ledger.
    expect(task.tools_called).toMatchObject([
      { tool: "up.pay", status: "succeeded" },
      { tool: "up.free", status: "succeeded" },
    ]);
    // Without the key, it is impossible to tell whether an answer exists.
    if (sql.includes("tool_calls")) expect(found.map(({ code }) => code)).toEqual(["row_changed"]);
    expect(await foundNow()).toEqual([]);
  });
});

test("each call's entries name the call as the task shows it, refused or not", async () => {
  const { id, open } = await called(["up__pay", "no__such"]);
  open();
  const { tools_called: calls } = await ended(gateway, id);
  const entries = (await ledger(gateway)).filter(({ task, action }) => task === id && action === "tool.call");
  expect(entries.map(({ phase, detail }) => [phase, detail?.call])).toEqual([
    ["intent", calls[0].id],
    ["outcome", undefined],
    ["single", calls[1].id],
  ]);
});

describe("records and charges after a restart follow the ledger if someone has changed", () => {
  test.each<[string, string]>([
    ["what was reserved", "UPDATE tasks SET open_reserved = 777000000"],
    ["the model", "UPDATE tasks SET model = 'ceo/forged'"],
    ["the agent", "UPDATE tasks SET agent = 'boss', agent_id = (SELECT id FROM agents WHERE name = 'boss')"],
    ["the payer", "UPDATE tasks SET agent_id = (SELECT id FROM agents WHERE name = 'boss')"],
    ["the open call", "UPDATE tasks SET open_model_call = NULL, status = 'queued'"],
    ["the status", "UPDATE tasks SET status = 'queued'"],
    ["the cost", "UPDATE tasks SET credits = 123000000"],
    ["its tokens", "UPDATE tasks SET input_tokens = 999, output_tokens = 999"],
    ["its steps", "UPDATE tasks SET steps = 77"],
    ["a price", "UPDATE tool_calls SET price = 50000000"],
  ])("%s", async (what, sql) => {
    const { id, open } = await called();
    const isNamed = what !== "the status";
    const before = (await ledger(gateway)).filter(({ task }) => task === id);
    await crash((file) => file.exec(sql));
    open();
    await ended(gateway, id);
    const entries = (await ledger(gateway)).filter(({ task, phase }) => task === id && phase !== "single");
    expect(JSON.stringify(entries)).not.toMatch(/ceo|boss/);
    expect(unsettled(entries)).toEqual([]);
    const lost = entries.filter(({ code, action }) => code === "interrupted" && action === "model.call");
    const intent = before.at(-1);
    expect(lost).toMatchObject([
      { ref: intent?.seq, model: "up/a", credits: intent?.detail?.reserved as number },
    ]);
    const calls = entries.filter(({ phase, action }) => phase === "outcome" && action !== "task.dispatch");
    const sum = (each: (entry: (typeof calls)[number]) => unknown) =>
      calls.reduce((total, entry) => total + Number(each(entry) ?? 0), 0);
    expect(entries.at(-1)).toMatchObject({
      action: "task.dispatch",
      ...{ agent: "clerk", model: "up/a", credits: sum(({ credits }) => credits) },
      detail: {
        input_tokens: sum(({ detail }) => detail?.input_tokens),
        output_tokens: sum(({ detail }) => detail?.output_tokens),
        steps: calls.filter(({ action, outcome }) => action === "model.call" && outcome === "succeeded")
          .length,
      },
    });
    expect(await spent(gateway)).toBe(sum(({ credits }) => credits));
    expect(payers()).toEqual(["clerk"]);
    // Only a seal covers who pays, and checking it takes the key.
    expect(found.map(({ code }) => code)).toEqual(isNamed && what !== "the payer" ? ["row_changed"] : []);
    // A status by itself is not evidence of anything: the task continues, and its open call is recorded.
    expect(await named()).toEqual(isNamed ? [{ table: "tasks", row: `1/${id}` }] : []);
    expect(await foundNow()).toEqual([]);
  });

  test("a tool call's price while it is in flight", async () => {
    upstream.answer(() => new Promise(() => {}));
    model.script("a", { toolCalls: [{ name: "up__pay", arguments: {} }] });
    const id = await dispatch(gateway, { agent: "clerk", tools: ["up.pay"] });
    await until(() => upstream.calls.length === 1);
    await crash((file) => file.exec("UPDATE tool_calls SET price = 50000000, tool = 'up.free'"));
    upstream.answer(() => Promise.resolve(text("done")));
    await ended(gateway, id);
    const lost = (await ledger(gateway)).filter(
      ({ code, action }) => code === "interrupted" && action === "tool.call",
    );
    expect(lost).toMatchObject([{ tool: "up.pay", credits: CREDIT / 4 }]);
    expect(upstream.calls).toHaveLength(1);
  });
});

describe("a lost call is charged to the agent that its signed entry names, or only to the workspace, if someone has", () => {
  const SWAPPED = `UPDATE agents SET name = 'between' WHERE name = 'clerk';
    UPDATE agents SET name = 'clerk' WHERE name = 'boss'; UPDATE agents SET name = 'boss' WHERE name = 'between'`;
  const TOKEN_MOVED = "UPDATE tokens SET agent_id = (SELECT id FROM agents WHERE name = 'boss')";

  test.each<[string, string, string | null]>([
    ["changed nothing", "SELECT 1", "clerk"],
    ["given the token to another agent", TOKEN_MOVED, "clerk"],
    ["deleted the token", "DELETE FROM tokens WHERE agent_id IS NOT NULL", "clerk"],
    ["swapped the agents' names", SWAPPED, null],
    ["swapped the agents' names, and given away the token", `${TOKEN_MOVED}; ${SWAPPED}`, null],
    ["deleted the agent", "DELETE FROM agents WHERE name = 'clerk'", null],
    [
      "put another agent under its name",
      "DELETE FROM agents WHERE name = 'clerk'; UPDATE agents SET name = 'clerk' WHERE name = 'boss'",
      null,
    ],
  ])("%s", async (_, sql, payer) => {
    upstream.answer(() => new Promise(() => {}));
    const client = await connect(gateway, { token: await gateway.token({ agent: "clerk" }) });
    void client.call("up__pay").catch(() => {});
    await until(() => upstream.calls.length === 1);
    await crash((file) => file.exec(sql));
    const lost = (await ledger(gateway)).filter(
      ({ code, phase }) => code === "unknown" && phase === "outcome",
    );
    expect(lost).toMatchObject([{ agent: "clerk", tool: "up.pay", credits: CREDIT / 4 }]);
    expect(payers()).toEqual([payer]);
  });

  test("swapped the agents' names and changed the task that made it", async () => {
    model.script("a", held().script);
    const id = await dispatch(gateway, { agent: "clerk" });
    await until(() => model.requests.length === 1);
    await crash((file) => file.exec(`UPDATE tasks SET agent_id = 1; ${SWAPPED}`));
    await ended(gateway, id);
    expect(payers()).toEqual([null]);
  });
});

test("an unchanged task continues after several crashes, and costs what its entries record", async () => {
  const { id, open } = await called();
  await crash(() => {});
  await until(() => model.requests.length === 3);
  await crash(() => {});
  open();
  expect((await ended(gateway, id)).status).toBe("succeeded");
  expect(upstream.calls).toHaveLength(2);
  expect(await named()).toEqual([]);
  expect([found, await foundNow()]).toEqual([[], []]);
});

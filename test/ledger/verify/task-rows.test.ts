/** The rows of tasks and of their calls match the signed entries, or are named. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector } from "../../mcp/support.ts";
import { startFakeModel } from "../../support/fake-model.ts";
import { startGateway } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";
import { startScriptedMcp } from "../../support/scripted-mcp.ts";
import { dispatch, run, until, yamlOf } from "../../tasks/support.ts";
import { allFindings, type Copy, copyOf, verify } from "./scene.ts";

setDefaultTimeout(60_000);

let scene: ReturnType<typeof tempDir>;
let finished: string;
let waiting: string;
let copy: Copy;

/** A task that has ended after two calls and a refused one, one that waits for a person, and a second that has ended. */
beforeAll(async () => {
  scene = tempDir();
  const [model, tools] = [startFakeModel(), startScriptedMcp(["pay"])];
  const more = 'tools: { "up.pay": 0.25 }';
  const yaml = yamlOf(model.url, { tiers: { 1: ["a"] }, prices: { a: [1, 1] }, more });
  const gateway = await startGateway({ yaml, dataDir: scene.path });
  await addConnector(gateway, "up", tools.url);
  await gateway.agent("clerk", { budget: { credits_per_day: 1_000 } });
  await gateway.agent("careful", { approvals: ["*"] });
  let asked = 0;
  model.script("a", () =>
    asked++ === 0
      ? { toolCalls: ["up__pay", "up__pay", "no__such"].map((name) => ({ name, arguments: {} })) }
      : { chunks: ["done"] },
  );
  finished = (await run(gateway, { agent: "clerk", tools: ["up.pay"] })).id;
  await run(gateway, { agent: "clerk" });
  model.script("a", { toolCalls: [{ name: "up__pay", arguments: {} }] });
  waiting = await dispatch(gateway, { agent: "careful", tools: ["up.pay"] });
  const statusOf = async () => (await gateway.call("GET", `/v1/tasks/${waiting}`)).body.status;
  await until(async () => (await statusOf()) === "awaiting_approval");
  await gateway.stop();
  await model.close();
  await tools.close();
});
afterAll(() => scene.remove());
beforeEach(() => {
  copy = copyOf(scene.path);
});
afterEach(() => copy.remove());

async function foundAfter(sql: string): Promise<readonly string[]> {
  const file = new Database(copy.path);
  file.exec(`PRAGMA foreign_keys = OFF; ${sql}`);
  file.close();
  return allFindings(await verify(copy.path)).map(({ code }) => code);
}

test("rows that nobody has changed agree with the ledger", async () => {
  const { verdict, ledgers } = await verify(copy.path);
  expect(verdict).toBe("holds");
  expect(ledgers[0]?.facts).toContainEqual({ label: "Tasks", value: "the rows of 3 agree with the ledger" });
});

const CHANGES: readonly (readonly [column: string, value: string])[] = [
  ["agent", "'careful2'"],
  ["tier", "9"],
  ["created_by", "'token:tok_ceo'"],
  ["dispatch_seq", "1"],
  ["finish_seq", "finish_seq + 1"],
  ["status", "'cancelled'"],
  ["model", "'ceo/forged'"],
  ["model", "NULL"],
  ["credits", "credits + 1"],
  ["input_tokens", "input_tokens + 1"],
  ["output_tokens", "output_tokens + 1"],
  ["steps", "steps + 1"],
  ["open_model_call", "5"],
  ["error_code", "'forged'"],
  ["finished_at", "NULL"],
];

test.each(CHANGES)("a finished task whose %s is %s is named", async (column, value) => {
  expect(await foundAfter(`UPDATE tasks SET ${column} = ${value} WHERE id = '${finished}'`)).toEqual([
    "row_changed",
  ]);
});

test.each([
  ["credits", "5"],
  ["steps", "0"],
  ["finish_seq", "5"],
  ["model", "'ceo/forged'"],
  ["status", "'succeeded'"],
  ["finished_at", "created_at"],
  ["error_code", "'forged'"],
])("an open task whose %s is %s is named", async (column, value) => {
  expect(await foundAfter(`UPDATE tasks SET ${column} = ${value} WHERE id = '${waiting}'`)).toEqual([
    "row_changed",
  ]);
});

test.each([
  ["the id", "UPDATE tool_calls SET id = 'call_x' WHERE position = 0"],
  ["the tool", "UPDATE tool_calls SET tool = 'up.free' WHERE position = 0"],
  ["the status", "UPDATE tool_calls SET status = 'denied' WHERE position = 0"],
  ["the price", "UPDATE tool_calls SET price = 1 WHERE position = 0"],
  ["the outcome", "UPDATE tool_calls SET outcome_seq = NULL WHERE position = 0"],
  ["the id of a refused one", "UPDATE tool_calls SET id = 'call_x' WHERE position = 2"],
  ["one too few", "DELETE FROM tool_calls WHERE position = 1"],
  ["none", "DELETE FROM tool_calls"],
  [
    "one too many",
    `INSERT INTO tool_calls SELECT workspace_id, task_id, 9, 'call_y', tool, status, intent_seq, started_at,
     duration_ms, outcome_seq, price FROM tool_calls WHERE position = 0`,
  ],
  ["another task", "UPDATE tool_calls SET task_id = (SELECT MAX(id) FROM tasks)"],
])("calls with %s changed are named", async (_, sql) => {
  const found = await foundAfter(sql);
  expect([...new Set(found)]).toEqual(["row_changed"]);
});

test("a task without a row is named", async () => {
  expect(await foundAfter(`DELETE FROM tasks WHERE id = '${finished}'`)).toEqual(["row_changed"]);
});

test("a row that no entry has dispatched is named", async () => {
  const columns = `workspace_id, agent_id, agent, tier, tools, metadata, status, attempts, credits, input_tokens,
    output_tokens, steps, dispatch_seq, finish_seq, event_ceiling, created_by, created_at, finished_at`;
  const made = finished.replace(/....$/, "zzzz");
  const insert = `INSERT INTO tasks (id, ${columns}) SELECT '${made}', ${columns} FROM tasks WHERE id = '${finished}'`;
  expect(await foundAfter(insert)).toEqual(["row_changed"]);
});

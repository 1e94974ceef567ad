/** Changes to the row of a finished task by a person with the file, but without the keys, are not signed. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { ledger, openEvents, run, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

let directory: ReturnType<typeof tempDir>;
let model: FakeModel;
let yaml: string;
let gateway: TestGateway;
/** The first is changed, the second is another one. */
let ids: string[];
beforeEach(async () => {
  directory = tempDir();
  model = startFakeModel();
  yaml = yamlOf(model.url, { tiers: { 1: ["a"] } });
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: directory.path });
  await gateway.agent("plain");
  await gateway.agent("boss");
  ids = [(await run(gateway, { agent: "plain" })).id, (await run(gateway, { agent: "plain" })).id];
});
afterEach(async () => {
  await gateway.stop();
  await model.close();
  directory.remove();
});

async function restart(sql: string): Promise<void> {
  await gateway.stop();
  const file = new Database(databasePath(directory.path));
  file.query(`UPDATE tasks SET ${sql} WHERE id = ?1`).run(ids[0] ?? "");
  file.close();
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: directory.path });
}

const decide = () =>
  gateway.call("POST", `/v1/tasks/${ids[0]}/override`, {
    body: { decision: "disregard", reason: "It is wrong." },
  });

/**
 * Reads the task through every interface, and decides on its output. @returns the entries about that, in order, and
 * the answer
 */
async function touch() {
  const before = (await ledger(gateway)).at(-1)?.seq ?? 0;
  await gateway.call("GET", `/v1/tasks/${ids[0]}`);
  await (await openEvents(gateway, ids[0] ?? "")).text();
  expect((await gateway.call("POST", `/v1/tasks/${ids[0]}/cancel`)).body.code).toBe("task_finished");
  const { status, body } = await decide();
  const about = ["task.read", "task.events", "task.cancel", "oversight.disregard"];
  const entries = (await ledger(gateway)).filter(({ action, seq }) => seq > before && about.includes(action));
  return { status, code: body.code, entries };
}

const named = async () =>
  (await ledger(gateway)).filter(({ action }) => action === "store.row_changed").map(({ detail }) => detail);

const OTHER_DISPATCH = "dispatch_seq = (SELECT dispatch_seq FROM tasks WHERE id > ?1)";

test.each<[string, string | null, string]>([
  ["agent", "plain", "agent = 'boss'"],
  ["agent and no seal", "plain", "agent = 'boss', seal = NULL"],
  ["agent and dispatch", null, `agent = 'boss', seal = NULL, ${OTHER_DISPATCH}`],
])("with another %s: no entry names that agent, and no decision on it is recorded", async (_, agent, sql) => {
  await restart(sql);
  const { status, code, entries } = await touch();
  expect([status, code]).toEqual([503, "ledger_unavailable"]);
  expect(entries.map((entry) => [entry.action, entry.task, entry.agent ?? null, entry.outcome])).toEqual([
    ["task.read", ids[0], agent, "succeeded"],
    ["task.events", ids[0], agent, "succeeded"],
    ["task.cancel", ids[0], agent, "denied"],
    ["oversight.disregard", ids[0], agent, "failed"],
  ]);
  expect(await named()).toEqual([{ table: "tasks", row: `1/${ids[0]}` }]);
});

test.each([
  ["another task's end", "finish_seq = (SELECT finish_seq FROM tasks WHERE id > ?1)"],
  ["no end", "finish_seq = NULL"],
  ["an entry that is not an end", "finish_seq = dispatch_seq"],
  ["another status", "status = 'failed'"],
])("with %s: no decision on it is recorded", async (_, sql) => {
  await restart(sql);
  const { status, body } = await decide();
  expect([status, body.code]).toEqual([503, "ledger_unavailable"]);
  const decisions = (await ledger(gateway)).filter(({ action }) => action === "oversight.disregard");
  expect(decisions.map(({ outcome }) => outcome)).toEqual(["failed"]);
  expect(await named()).toEqual([{ table: "tasks", row: `1/${ids[0]}` }]);
});

test("an unchanged task is named with its agent, even if an earlier version ended it without a seal", async () => {
  const names = async () => {
    const { status, entries } = await touch();
    expect(status).toBe(200);
    return entries.map(({ agent }) => agent);
  };
  expect(await names()).toEqual(["plain", "plain", "plain", "plain"]);
  await restart("seal = NULL");
  expect(await names()).toEqual(["plain", "plain", "plain", "plain"]);
  expect(await named()).toEqual([]);
});

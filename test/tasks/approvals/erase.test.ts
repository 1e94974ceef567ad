/** Texts of approvals are erased along with the call's, and with the task's. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { databasePath } from "../../../src/store/directory.ts";
import { ended, ledger, openEvents } from "../support.ts";
import { type ApprovalStage, startApprovals } from "./support.ts";

let stage: ApprovalStage;
let task: string;
beforeEach(async () => {
  stage = await startApprovals({}, { isOnFiles: true }, [
    { name: "up__send", arguments: { to: "first-address" } },
  ]);
  const asked = await stage.ask();
  task = asked.task;
  const body = { decision: "approve", reason: "their-reason", arguments: { to: "second-address" } };
  expect((await stage.decide(asked.path, body)).status).toBe(200);
  await ended(stage.gateway, task);
  const override = { decision: "override", reason: "override-reason", output: "better-output" };
  expect((await stage.decide(`/v1/tasks/${task}/override`, override)).status).toBe(200);
});
afterEach(() => stage.stop());

const TEXTS = ["first-address", "second-address", "their-reason", "override-reason", "better-output"];

/** The texts that the store still has, in payloads and in events. */
async function left(): Promise<string[]> {
  const database = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
  const payloads = database.query("SELECT body FROM payloads").all();
  database.close();
  const events = await (await openEvents(stage.gateway, task)).text();
  return TEXTS.filter((text) => `${JSON.stringify(payloads)}${events}`.includes(text));
}

const find = async (fits: (entry: Awaited<ReturnType<typeof ledger>>[number]) => boolean) =>
  (await ledger(stage.gateway)).find((entry) => entry.task === task && fits(entry))?.seq;

test("with the task's dispatch everything is erased, including later overrides of its output", async () => {
  expect(await left()).toEqual(TEXTS);
  const seq = await find(({ action, phase }) => action === "task.dispatch" && phase === "intent");
  expect((await stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`)).status).toBe(204);
  expect(await left()).toEqual([]);
});

test.each([
  [
    "what a person was shown",
    (action: string, outcome: string) => action === "tool.call" && outcome === "pending",
  ],
  ["what a person has changed", (action: string) => action === "oversight.approve"],
])("with %s all arguments of the call are erased, wherever they are", async (_, fits) => {
  const seq = await find(({ action, outcome }) => fits(action, outcome));
  expect((await stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`)).status).toBe(204);
  const events = await (await openEvents(stage.gateway, task)).text();
  expect(events).not.toContain('"to":"');
  expect((await stage.task(task)).tools_called).toMatchObject([{ arguments: null }]);
  const database = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
  const inputs = database.query("SELECT body FROM payloads WHERE kind = 'input'").all();
  database.close();
  expect(JSON.stringify(inputs)).not.toContain("-address");
});

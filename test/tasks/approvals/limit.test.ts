/** The limit on calls in a workspace that wait for a person. The next call is not made, and its model is told why. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { PENDING_LIMIT } from "../../../src/tasks/approvals/rows.ts";
import { ownConnection } from "../../support/own-connection.ts";
import { dispatch, ended, until } from "../support.ts";
import { type ApprovalStage, startApprovals } from "./support.ts";

setDefaultTimeout(60_000);

let stage: ApprovalStage;
beforeEach(async () => {
  stage = await startApprovals({}, { isOnFiles: true });
});
afterEach(() => stage.stop());

test("beyond 10,000 pending calls, no approval is requested until one of them is decided", async () => {
  ownConnection(stage.gateway.dataDir).run(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     INSERT INTO approvals (workspace_id, task_id, call_id, agent, tool, pending_seq, arguments_seq, arguments_hash,
       required, presented_at, expires_at, status)
     SELECT w.id, 'task_' || i, 'call', 'careful', 'up.send', -i, -i, '', 1, 0, 4102444800000, 'pending'
     FROM n, workspaces w WHERE w.name = 'default'`,
    [PENDING_LIMIT - 1],
  );
  const last = await stage.ask();
  const refused = await dispatch(stage.gateway, { agent: "careful", tools: ["up.send"] });
  const task = await ended(stage.gateway, refused);
  expect(task).toMatchObject({ status: "succeeded", tools_called: [{ tool: "up.send", status: "denied" }] });
  expect(task.output).toContain("Too many calls in this workspace are already waiting for a person.");
  expect(stage.tools.calls).toEqual([]);

  expect((await stage.decide(last.path, { decision: "deny" })).status).toBe(200);
  await until(async () => (await stage.task(last.task)).finished_at !== null);
  const next = await stage.ask();
  expect((await stage.task(next.task)).status).toBe("awaiting_approval");
});

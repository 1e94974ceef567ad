/** How a start treats tasks whose agent was stopped or archived before the process could end them. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { addConnector } from "../mcp/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { dispatch, ended, ledger, unsettled, until, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

let upstream: FakeModel;
let tools: ScriptedMcp;
let gateway: TestGateway;
let directories: string[];
let yaml: string;

beforeEach(async () => {
  upstream = startFakeModel();
  tools = startScriptedMcp(["send"]);
  upstream.script("a", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: ["done"] }
      : { toolCalls: [{ name: "up__send", arguments: {} }] },
  );
  yaml = yamlOf(upstream.url, { tiers: { 1: ["a"] } });
  directories = [directory()];
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: directories[0] ?? "" });
  await addConnector(gateway, "up", tools.url);
});
afterEach(async () => {
  await gateway.stop();
  await tools.close();
  await upstream.close();
  for (const each of directories) rmSync(each, { recursive: true, force: true });
});

function directory(): string {
  return mkdtempSync(join(tmpdir(), "gatehouse-recover-"));
}

/** Starts a process where this one was killed, with `change` as its last write. */
async function crash(change: string): Promise<void> {
  const next = directory();
  cpSync(gateway.dataDir, next, { recursive: true });
  await gateway.stop();
  const database = new Database(databasePath(next));
  database.run(change);
  database.close();
  directories.push(next);
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: next });
}

async function ask(agent: string): Promise<{ id: string; approval: string }> {
  const id = await dispatch(gateway, { agent, tools: ["up.send"] });
  let approval = "";
  await until(async () => {
    const { data } = (await gateway.call("GET", "/v1/approvals")).body;
    const mine = data.find(({ task }: { task: string }) => task === id);
    if (mine) approval = `/v1/tasks/${id}/approvals/${mine.call_id}`;
    return approval !== "";
  });
  return { id, approval };
}

describe.each([
  ["stopped", "UPDATE agents SET status = 'stopped' WHERE name = 'careful'"],
  ["archived", "UPDATE agents SET archived_at = 1 WHERE name = 'careful'"],
])("a task that waits for a person, and whose agent was %s before the process died", (_name, change) => {
  test("is cancelled at the start, and the request is withdrawn", async () => {
    await gateway.agent("careful", { approvals: ["up.*"] });
    await gateway.agent("other", { approvals: ["up.*"] });
    const gone = await ask("careful");
    const stays = await ask("other");
    await crash(change);
    const task = await ended(gateway, gone.id);
    expect(task).toMatchObject({ status: "cancelled", error: { code: "agent_stopped" } });
    const late = await gateway.call("POST", gone.approval, { body: { decision: "approve" } });
    expect([late.status, late.body.code]).toEqual([409, "approval_decided"]);
    const { data } = (await gateway.call("GET", "/v1/approvals")).body;
    expect(data.map(({ task: id }: { task: string }) => id)).toEqual([stays.id]);
    expect((await gateway.call("GET", `/v1/tasks/${stays.id}`)).body.status).toBe("awaiting_approval");

    const yes = await gateway.call("POST", stays.approval, { body: { decision: "approve" } });
    expect(yes.status).toBe(200);
    expect((await ended(gateway, stays.id)).status).toBe("succeeded");
    expect(tools.calls).toHaveLength(1);
    const ends = (await ledger(gateway)).filter(
      ({ action, phase, task: about }) =>
        action === "task.dispatch" && phase === "outcome" && about === gone.id,
    );
    expect(ends).toMatchObject([{ outcome: "cancelled", code: "agent_stopped" }]);
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });
});

test("all waiting tasks of a stopped workspace are cancelled at the start", async () => {
  await gateway.agent("careful", { approvals: ["up.*"] });
  const { id } = await ask("careful");
  await crash("UPDATE workspaces SET status = 'stopped'");
  expect(await ended(gateway, id)).toMatchObject({
    status: "cancelled",
    error: { code: "agent_stopped", message: "The workspace was stopped." },
  });
  expect(tools.calls).toEqual([]);
});

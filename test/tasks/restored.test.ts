/**
 * What had not ended when a backup was made. The original server goes on with it, so the one that is restored must not,
 * unless its operator says so.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { makeBackup } from "../../src/store/backup/make.ts";
import { readRestoredNote, writeRestoredNote } from "../../src/store/backup/restored-note.ts";
import { unpackBackup } from "../../src/store/backup/unpack.ts";
import { addConnector } from "../mcp/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { dispatch, ended, held, ledger, unsettled, until, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

let directory: ReturnType<typeof tempDir>;
let upstream: FakeModel;
let tools: ScriptedMcp;
let original: TestGateway;
let restored: TestGateway | undefined;
let yaml: string;
const gateOfModel = () => held({ chunks: ["done"] });
let model: ReturnType<typeof gateOfModel>;

beforeEach(async () => {
  directory = tempDir();
  mkdirSync(join(directory.path, "original"));
  upstream = startFakeModel();
  tools = startScriptedMcp(["send"]);
  model = gateOfModel();
  upstream.script("slow", model.script);
  upstream.script("caller", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: ["sent"] }
      : { toolCalls: [{ name: "up__send", arguments: {} }] },
  );
  yaml = yamlOf(upstream.url, {
    tiers: { 1: ["slow"], 2: ["caller"] },
    limits: { running_tasks_per_node: 2 },
  });
  original = await startGateway({ isOnFiles: true, yaml, dataDir: join(directory.path, "original") });
  await addConnector(original, "up", tools.url);
  await original.agent("helper");
  await original.agent("careful", { approvals: ["up.*"] });
});
afterEach(async () => {
  model.open();
  await restored?.stop();
  restored = undefined;
  await original.stop();
  await tools.close();
  await upstream.close();
  directory.remove();
});

/** A task that runs, one that waits for a person, one that waits for a slot, and such a response. */
async function openWork() {
  const awaiting = await dispatch(original, { agent: "careful", tier: 2, tools: ["up.send"] });
  await until(async () => (await statusOf(original, awaiting)) === "awaiting_approval");
  const running = await dispatch(original, { agent: "helper", tier: 1 });
  await model.asked;
  const second = await dispatch(original, { agent: "helper", tier: 1 });
  const queued = await dispatch(original, { agent: "helper", tier: 1 });
  const response = await original.call("POST", "/v1/responses", {
    body: { model: "up/slow", input: "hi", background: true },
  });
  expect(response.status).toBe(200);
  return { tasks: { awaiting, running, second, queued }, response: response.body.id as string };
}

async function statusOf(gateway: TestGateway, id: string): Promise<string> {
  return (await gateway.call("GET", `/v1/tasks/${id}`)).body.status;
}

async function restore(unfinished: "end" | "continue"): Promise<TestGateway> {
  const made = await makeBackup({
    ...{
      dataDir: original.dataDir,
      copyPath: join(directory.path, "copy"),
      withKeys: true,
      withConfig: true,
    },
    ...{ now: new Date(), signal: new AbortController().signal, progress() {} },
  });
  const file = new Blob([Buffer.concat(await Array.fromAsync(made.bytes))]);
  made.close();
  const dataDir = join(directory.path, "restored");
  mkdirSync(dataDir);
  const { created_at } = await unpackBackup({ file, directory: dataDir, progress() {} });
  writeRestoredNote(dataDir, {
    ...{ file: "b.tar", created_at, restored_at: created_at, program: "1.0.0" },
    ...{ unfinished, recorded: false },
  });
  return startGateway({ isOnFiles: true, yaml, dataDir, admin: original.admin });
}

test("ends as failed, and nothing of it is called again", async () => {
  const { tasks, response } = await openWork();
  const calls = () => upstream.requests.length;
  const before = calls();
  restored = await restore("end");
  for (const id of Object.values(tasks)) {
    expect(await ended(restored, id)).toMatchObject({
      status: "failed",
      error: {
        code: "interrupted",
        message: "It had not ended when the backup was made from which this server was restored.",
      },
    });
  }
  const answer = await restored.call("GET", `/v1/responses/${response}`);
  expect(answer.body).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("backup") },
  });
  expect((await restored.call("GET", "/v1/approvals")).body.data).toEqual([]);
  expect(unsettled(await ledger(restored))).toEqual([]);
  expect({ calls: calls(), tools: tools.calls.length }).toEqual({ calls: before, tools: 0 });
  expect(readRestoredNote(restored.dataDir)).toBeNull();
  // The original is not affected.
  expect(await statusOf(original, tasks.awaiting)).toBe("awaiting_approval");
  expect(await statusOf(original, tasks.running)).toBe("running");
});

test("goes on if the operator says so", async () => {
  const { tasks, response } = await openWork();
  restored = await restore("continue");
  model.open();
  for (const id of [tasks.running, tasks.second, tasks.queued]) {
    expect(await ended(restored, id)).toMatchObject({ status: "succeeded" });
  }
  expect(await statusOf(restored, tasks.awaiting)).toBe("awaiting_approval");
  const at = restored;
  await until(async () => {
    const answer = await at.call("GET", `/v1/responses/${response}`);
    return answer.body.status === "completed";
  });
});

test("is ended by a later start, if the first one dies before", async () => {
  const { tasks } = await openWork();
  restored = await restore("end");
  await restored.stop();
  const dataDir = restored.dataDir;
  // As a start leaves it that dies before it has ended anything.
  const note = { file: "b.tar", created_at: "x", restored_at: "x", program: "1.0.0" };
  writeRestoredNote(dataDir, { ...note, unfinished: "end", recorded: true });
  restored = await startGateway({ isOnFiles: true, yaml, dataDir, admin: original.admin });
  expect(await statusOf(restored, tasks.queued)).toBe("failed");
  const entries = await ledger(restored);
  expect(entries.filter(({ action }) => action === "store.restore")).toHaveLength(1);
});

/**
 * What had not ended when a backup was made. The original server goes on with it, so the one that is restored must not,
 * unless its operator says so.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { makeBackup } from "../../src/store/backup/make.ts";
import {
  type RestoredNote,
  readRestoredNote,
  writeRestoredNote,
} from "../../src/store/backup/restored-note.ts";
import { unpackBackup } from "../../src/store/backup/unpack.ts";
import { addConnector } from "../mcp/support.ts";
import { type FakeReceiver, startReceiver } from "../notify/support.ts";
import { FakeClock } from "../support/clock.ts";
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

/** Makes a data directory from a backup of another one, as `gatehouse restore` does. */
async function copyOf(from: string, name: string, note: Pick<RestoredNote, "unfinished" | "restored_at">) {
  const made = await makeBackup({
    ...{ dataDir: from, workFolder: directory.path, withSecrets: true },
    ...{ now: new Date(), signal: new AbortController().signal, progress() {} },
  });
  const file = new Blob([Buffer.concat(await Array.fromAsync(made.bytes))]);
  made.close();
  const dataDir = join(directory.path, name);
  mkdirSync(dataDir);
  const { created_at } = await unpackBackup({ file, directory: dataDir, progress() {} });
  writeRestoredNote(dataDir, { ...note, file: "b.tar", created_at, program: "1.0.0", recorded: false });
  return dataDir;
}

async function restore(unfinished: "end" | "continue"): Promise<TestGateway> {
  const note = { unfinished, restored_at: new Date().toISOString() };
  const dataDir = await copyOf(original.dataDir, "restored", note);
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

describe("what the original did at its times", () => {
  const START = Date.UTC(2026, 0, 2, 3, 4, 5);
  let receiver: FakeReceiver;
  let settings: string;
  let clock: FakeClock;
  let own: TestGateway;

  beforeEach(async () => {
    receiver = startReceiver("task.finished");
    receiver.answers.push(() => new Response(null, { status: 500 }));
    settings = `notify: { webhook: "${receiver.url}" }\n`;
    clock = new FakeClock(START);
    mkdirSync(join(directory.path, "own"));
    own = await startGateway({
      ...{ isOnFiles: true, yaml: settings, clock },
      dataDir: join(directory.path, "own"),
    });
    await own.agent("helper");
  });
  afterEach(async () => {
    await own.stop();
    await receiver.close();
  });

  async function restoredAt(unfinished: "end" | "continue", time: string): Promise<TestGateway> {
    const dataDir = await copyOf(own.dataDir, "again", { unfinished, restored_at: time });
    // The original keeps its own clock.
    clock = new FakeClock(Date.parse(time));
    restored = await startGateway({ isOnFiles: true, yaml: settings, dataDir, admin: own.admin, clock });
    return restored;
  }

  const deliveryOf = async (gateway: TestGateway) => {
    const { data } = (await gateway.call("GET", "/v1/webhooks/deliveries")).body;
    return data.find(({ type }: { type: string }) => type === "task.finished");
  };

  const schedule = async () => {
    const body = { name: "hourly", agent: "helper", prompt: "hello", cron: "0 * * * *", missed: "once" };
    const made = await own.call("POST", "/v1/schedules", { body });
    expect(made.status).toBe(201);
    return made.body.id as string;
  };

  test("its schedules have run there", async () => {
    const id = await schedule();
    const gateway = await restoredAt("end", "2026-01-02T05:30:00Z");
    expect((await gateway.call("GET", `/v1/schedules/${id}`)).body).toMatchObject({
      next_run_at: "2026-01-02T06:00:00.000Z",
    });
    const dispatches = (await ledger(gateway)).filter(({ action }) => action === "task.dispatch");
    expect(dispatches).toMatchObject([
      { outcome: "cancelled", code: "missed", detail: { scheduled_at: "2026-01-02T04:00:00.000Z" } },
    ]);
    expect((await gateway.call("GET", "/v1/tasks")).body.data).toEqual([]);
  });

  test("its schedules have not, if it was stopped before", async () => {
    await schedule();
    const gateway = await restoredAt("continue", "2026-01-02T05:30:00Z");
    await until(async () => {
      clock.advance(1);
      return (await gateway.call("GET", "/v1/tasks")).body.data.length === 1;
    });
  });

  test("its notices are posted there, and can be asked for here", async () => {
    await ended(own, await dispatch(own, { agent: "helper", tier: 1 }));
    await until(() => receiver.posted.length === 1);
    await until(async () => {
      return (await deliveryOf(own))?.attempts === 1;
    });
    const gateway = await restoredAt("end", "2026-01-03T00:00:00Z");
    const delivery = await deliveryOf(gateway);
    expect(delivery).toMatchObject({
      ...{ type: "task.finished", status: "failed" },
      last_error: "not posted: the server was restored from a backup",
    });
    clock.advance(60_000);
    await gateway.call("GET", "/v1/agents");
    expect(receiver.posted).toHaveLength(1);
    await gateway.call("POST", `/v1/webhooks/deliveries/${delivery.id}/redeliver`);
    await until(() => receiver.posted.length === 2);
  });
});

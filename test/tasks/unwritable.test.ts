/** The store fails in the middle of a run: no intent stays open, whatever was used is billed, and the task ends. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { type Db, StoreUnavailable } from "../../src/store/db.ts";
import { RowSeals } from "../../src/store/seals/seals.ts";
import { EndingRetries } from "../../src/tasks/ending/retries.ts";
import { loadQueuedTask } from "../../src/tasks/ending/store-retries.ts";
import { FakeClock } from "../support/clock.ts";
import { ownConnection } from "../support/own-connection.ts";
import { dispatch, ended, held, ledger, run, type Stage, startStage, unsettled, until } from "./support.ts";

let stage: Stage;
let file: Database;

beforeEach(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] }, prices: { a: [1, 1] } });
  await stage.gateway.agent("plain");
  file = ownConnection(stage.gateway.dataDir);
});
afterEach(async () => {
  await stage.stop();
});

/** To the store, a trigger that refuses looks like a full disk. */
function refuse(name: string, event: string, refusal: string): void {
  file.run(`CREATE TRIGGER ${name} BEFORE ${event} BEGIN SELECT RAISE(ABORT, '${refusal}'); END`);
}

test("a model call whose outcome could not be written is settled and charged by the task's end", async () => {
  const hold = held({ chunks: ["hello"], usage: { prompt_tokens: 1000, completion_tokens: 2000 } });
  stage.upstream.script("a", hold.script);
  const id = await dispatch(stage.gateway, { agent: "plain" });
  await hold.asked;
  // The model call's own write raises `steps`; the write at the task's end does not.
  refuse("no_step", "UPDATE OF steps ON tasks WHEN NEW.steps > OLD.steps", "full");
  hold.open();
  const task = await ended(stage.gateway, id);
  expect(task).toMatchObject({
    status: "failed",
    error: { code: "interrupted" },
    credits_consumed: 3,
    usage: { input_tokens: 1000, output_tokens: 2000, steps: 0 },
  });
  const entries = await ledger(stage.gateway);
  expect(unsettled(entries)).toEqual([]);
  const outcomes = entries.filter((entry) => entry.task === id && entry.phase === "outcome");
  expect(outcomes).toMatchObject([
    { action: "model.call", outcome: "failed", code: "interrupted", credits: 3_000_000 },
    { action: "task.dispatch", outcome: "failed", code: "interrupted", credits: 3_000_000 },
  ]);
  expect((await stage.gateway.call("GET", "/v1/workspace")).body.usage.credits_this_month).toBe(3);
});

test("a tool call whose outcome could not be written gets an outcome that records this", async () => {
  stage.upstream.script("a", { toolCalls: [{ name: "time__now", arguments: {} }] });
  refuse("no_result", "UPDATE OF duration_ms ON tool_calls", "full");
  const task = await run(stage.gateway, { agent: "plain", tools: ["time.now"] });
  expect(task).toMatchObject({ status: "failed", error: { code: "interrupted" } });
  expect(task.tools_called).toMatchObject([{ tool: "time.now", status: "unknown", duration_ms: null }]);
  const entries = await ledger(stage.gateway);
  expect(unsettled(entries)).toEqual([]);
  expect(entries.find(({ action, phase }) => action === "tool.call" && phase === "outcome")).toMatchObject({
    outcome: "failed",
    code: "interrupted",
  });
});

test("an end that is refused because of its content is written as a failure without it", async () => {
  const { gateway, upstream } = stage;
  const hold = held({ chunks: ["hello"] });
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  // A failure that is the statement's own fault, not the store's.
  file.run("CREATE UNIQUE INDEX one_output ON payloads (kind) WHERE kind = 'output'");
  file.run(
    "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, 999999, 'output', x'', '', 0)",
  );
  hold.open();
  expect(await ended(gateway, id)).toMatchObject({
    status: "failed",
    output: null,
    error: { code: "internal" },
  });
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("impossible counts are replaced by an estimate, and the task succeeds", async () => {
  for (const count of [2 ** 53 - 1, 1_000_000_001, -1, 1.5]) {
    stage.upstream.script("a", {
      chunks: ["12345678"],
      usage: { prompt_tokens: count, completion_tokens: count },
    });
    const task = await run(stage.gateway, { agent: "plain", prompt: "1234" });
    expect(task).toMatchObject({
      status: "succeeded",
      usage: { input_tokens: 1, output_tokens: 2, steps: 1 },
    });
  }
});

test("a task whose start cannot be written ends as interrupted once it can", async () => {
  refuse("no_start", "UPDATE OF attempts ON tasks", "full");
  expect(await run(stage.gateway, { agent: "plain" })).toMatchObject({
    status: "failed",
    error: { code: "interrupted" },
  });
  expect(stage.upstream.requests).toEqual([]);
});

test("a cancel that could not be written reports that, and not that the server is shutting down", async () => {
  const hold = held();
  stage.upstream.script("a", hold.script);
  const id = await dispatch(stage.gateway, { agent: "plain" });
  await hold.asked;
  file.run("ALTER TABLE task_events RENAME TO elsewhere");
  const answer = await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
  expect([answer.status, answer.body.code]).toEqual([500, "internal"]);
  file.run("ALTER TABLE elsewhere RENAME TO task_events");
});

test("a task that cannot be read at its start is read again after a pause, until the process stops", async () => {
  const clock = new FakeClock();
  const stopping = new AbortController();
  let asked = 0;
  const fails = async (): Promise<never> => {
    asked += 1;
    throw asked % 2 === 1 ? new StoreUnavailable("busy") : new Error("no such table");
  };
  const sql = { seals: new RowSeals(null), all: fails, get: fails, run: fails };
  const db: Db = {
    ...sql,
    urgent: sql,
    tx: fails,
    beforeCommit: () => {},
    afterLock() {},
    close: async () => {},
  };
  const queued = { workspaceId: 1, taskId: "task_1", agentId: 1 };
  const taken = loadQueuedTask({ db, clock, log: silentLog }, queued, {
    signal: new AbortController().signal,
    stopping: stopping.signal,
    retries: new EndingRetries(),
  });
  await until(() => asked === 1);
  for (let tries = 2; tries < 5; tries++) {
    await until(() => {
      clock.advance(5_000);
      return asked === tries;
    });
  }
  stopping.abort();
  expect(await taken).toBeUndefined();
});

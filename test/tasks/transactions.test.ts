/** How many transactions, and thus syncs, a run takes. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { countWal } from "../../scripts/benchmarks/processes/wal.ts";
import { ownConnection } from "../support/own-connection.ts";
import { dispatch, ended, held, ledger, run, type Stage, startStage, until } from "./support.ts";

let stage: Stage;

beforeEach(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
});
afterEach(async () => {
  await stage.stop();
});

const commits = () => countWal(stage.gateway.dataDir).commits;

test("a run without tools takes two transactions, once its task is accepted", async () => {
  const hold = held({ chunks: ["hello"] });
  stage.upstream.script("a", hold.script);
  const before = commits();
  const id = await dispatch(stage.gateway, { agent: "plain" });
  await hold.asked;
  expect(commits() - before).toBe(1);
  const entries = await ledger(stage.gateway);
  expect(entries.filter(({ task }) => task === id)).toMatchObject([
    { action: "task.dispatch", phase: "intent" },
    { action: "model.call", phase: "intent" },
  ]);
  const read = commits();
  hold.open();
  await until(() => commits() > read);
  const after = commits();
  expect(after - read).toBe(1);
  expect(await ended(stage.gateway, id)).toMatchObject({ status: "succeeded", output: "hello" });
});

test("a model is called only after its intent is stored, also if the run has begun before its task is", async () => {
  let stored = 0;
  stage.upstream.script("a", () => {
    stored = commits();
    return { chunks: ["hello"] };
  });
  const before = commits();
  await run(stage.gateway, { agent: "plain" });
  expect(stored - before).toBeGreaterThan(0);
});

test("of two dispatches with one idempotency key, only one calls a model", async () => {
  const { gateway, upstream } = stage;
  const post = () =>
    gateway.call("POST", "/v1/tasks", {
      body: { agent: "plain", prompt: "hi" },
      headers: { "Idempotency-Key": "once" },
    });
  const answers = await Promise.all([post(), post(), post()]);
  const [id] = answers.map(({ body }) => body.id);
  expect(answers.map(({ body }) => body.id)).toEqual([id, id, id]);
  await ended(gateway, id);
  expect(upstream.requests.length).toBe(1);
  const entries = (await ledger(gateway)).filter(({ task, phase }) => task === id && phase === "intent");
  expect(entries.map(({ action }) => action)).toEqual(["task.dispatch", "model.call"]);
});

test("a task whose dispatch the store refuses leaves nothing behind, and no model is called", async () => {
  const { gateway, upstream } = stage;
  const file = ownConnection(gateway.dataDir);
  file.run("CREATE TRIGGER full BEFORE INSERT ON tasks BEGIN SELECT RAISE(ABORT, 'full'); END");
  const answer = await gateway.call("POST", "/v1/tasks", { body: { agent: "plain", prompt: "hi" } });
  expect([answer.status, answer.body.code]).toEqual([503, "ledger_unavailable"]);
  file.run("DROP TRIGGER full");
  expect(upstream.requests).toEqual([]);
  expect(await run(gateway, { agent: "plain" })).toMatchObject({ status: "succeeded" });
  expect(upstream.requests.length).toBe(1);
});

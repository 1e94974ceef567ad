/** Runs that begin before their task is stored, while the provider's slots are taken. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { REQUEST_LIMIT_VARIABLE } from "../../src/limits/request-plan.ts";
import { ownConnection } from "../support/own-connection.ts";
import { dispatch, ended, type Gate, gate, type Stage, startStage, until } from "./support.ts";

const SLOTS = 8;
let stage: Stage;
let before: string | undefined;
let provider: Gate;
let tasks: string[];

beforeEach(async () => {
  before = Bun.env[REQUEST_LIMIT_VARIABLE];
  Bun.env[REQUEST_LIMIT_VARIABLE] = String(SLOTS);
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  provider = gate();
  stage.upstream.script("a", () => ({ chunks: ["held"], gate: provider.opened }));
  await stage.gateway.agent("plain");
  // More than there are slots: the last ones wait for one.
  tasks = await Promise.all(
    Array.from({ length: 2 * SLOTS }, () => dispatch(stage.gateway, { agent: "plain" })),
  );
  await until(async () => (await running()) === tasks.length);
});
afterEach(async () => {
  provider.open();
  for (const id of tasks) expect(await ended(stage.gateway, id)).toMatchObject({ status: "succeeded" });
  await stage.stop();
  if (before === undefined) delete Bun.env[REQUEST_LIMIT_VARIABLE];
  else Bun.env[REQUEST_LIMIT_VARIABLE] = before;
});

async function running(): Promise<number> {
  return (await stage.gateway.call("GET", "/v1/workspace")).body.usage.tasks_running;
}
const post = (headers: Record<string, string> = {}) =>
  stage.gateway.call("POST", "/v1/tasks", { body: { agent: "plain", prompt: "hi" }, headers });

test("a run whose task the store refuses ends at once", async () => {
  const file = ownConnection(stage.gateway.dataDir);
  file.run("CREATE TRIGGER full BEFORE INSERT ON tasks BEGIN SELECT RAISE(ABORT, 'full'); END");
  expect((await post()).status).toBe(503);
  file.run("DROP TRIGGER full");
  await until(async () => (await running()) === tasks.length);
});

test("a run whose task exists already ends at once", async () => {
  const once = { "Idempotency-Key": "once" };
  const answers = await Promise.all([post(once), post(once), post(once)]);
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  tasks.push(answers[0]?.body.id);
  await until(async () => (await running()) === tasks.length);
});

/**
 * Calls that end while the store cannot be written. They are charged once it can be, and keep their reservation until
 * then.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector, connect } from "../../mcp/support.ts";
import { FakeClock } from "../../support/clock.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../../support/scripted-mcp.ts";
import { type SmallDisk, smallDisk } from "../../support/small-disk.ts";
import { dispatch, ended, gate, ledger, type Stage, startStage, unsettled, until } from "../support.ts";
import { oneByOne, reservations, spent, worth } from "./support.ts";

setDefaultTimeout(60_000);

const CREDIT = 1_000_000;

let disk: SmallDisk;
let clock: FakeClock;
let upstream: ScriptedMcp;
let stage: Stage;
beforeEach(async () => {
  disk = smallDisk();
  clock = new FakeClock();
  upstream = startScriptedMcp(["paid"]);
  stage = await startStage({
    dataDir: disk.path,
    isOnFiles: true,
    clock,
    tiers: { 1: ["a"], 2: ["free"] },
    prices: { a: [0, 1] },
    more: 'tools: { "up.paid": 0.25 }',
  });
  await addConnector(stage.gateway, "up", upstream.url);
});
afterEach(async () => {
  await stage.stop();
  await upstream.close();
  disk.remove();
});

const isWritable = async (status: number) =>
  (await stage.gateway.call("GET", "/v1/agents")).status === status;
async function fill(): Promise<void> {
  disk.fill();
  await until(() => isWritable(503));
}
async function free(): Promise<void> {
  disk.free();
  await until(() => isWritable(200));
}

test("a model's call", async () => {
  await stage.gateway.agent("clerk", { budget: { credits_per_day: 3 } });
  const model = oneByOne(stage, "a", worth(2_000));
  const id = await dispatch(stage.gateway, { agent: "clerk" });
  await until(() => model.out() === 1);
  await fill();
  model.next();
  for (let turn = 0; turn < 20; turn++) expect(await isWritable(503)).toBe(true);
  expect(await reservations(stage.gateway)).toBe(1);
  await free();
  await until(async () => {
    clock.advance(1_000);
    return (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body.finished_at !== null;
  });
  expect(await ended(stage.gateway, id)).toMatchObject({
    status: "failed",
    credits_consumed: 2,
    error: { code: "interrupted" },
  });
  await until(async () => (await reservations(stage.gateway)) === 0);
  expect(await spent(stage.gateway)).toBe(2 * CREDIT);
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
});

test("a tool's call, of a task and over MCP", async () => {
  await stage.gateway.agent("clerk", { budget: { credits_per_day: 3 } });
  const held = gate();
  upstream.answer(async () => {
    await held.opened;
    return text("done");
  });
  stage.upstream.script("free", { toolCalls: [{ name: "up__paid", arguments: {} }] });
  const client = await connect(stage.gateway, { token: await stage.gateway.token({ agent: "clerk" }) });
  const id = await dispatch(stage.gateway, { agent: "clerk", tier: 2, tools: ["up.paid"] });
  const direct = client.refusal("tools/call", { name: "up__paid", arguments: {} });
  await until(() => upstream.calls.length === 2);
  await fill();
  held.open();
  expect((await direct).data.code).toBe("ledger_unavailable");
  await free();
  await until(async () => {
    clock.advance(1_000);
    return (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body.finished_at !== null;
  });
  expect((await ended(stage.gateway, id)).credits_consumed).toBe(0.25);
  await until(async () => {
    clock.advance(1_000);
    return (await reservations(stage.gateway)) === 0;
  });
  expect(await spent(stage.gateway)).toBe(CREDIT / 2);
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
});

test("a call over MCP that has reserved a whole budget blocks the next one only until its outcome is written, without a restart", async () => {
  await stage.gateway.agent("clerk", { budget: { credits_per_day: 0.5 } });
  const held = gate();
  upstream.answer(async () => {
    await held.opened;
    return text("done");
  });
  const client = await connect(stage.gateway, { token: await stage.gateway.token({ agent: "clerk" }) });
  const calls = [0, 1].map(() => client.refusal("tools/call", { name: "up__paid", arguments: {} }));
  await until(() => upstream.calls.length === 2);
  await fill();
  held.open();
  for (const refused of await Promise.all(calls)) expect(refused.data.code).toBe("ledger_unavailable");
  await free();
  let isAnswered = false;
  const next = client.refusal("tools/call", { name: "up__paid", arguments: {} }).finally(() => {
    isAnswered = true;
  });
  for (let turn = 0; turn < 20; turn++) expect(await isWritable(200)).toBe(true);
  expect(isAnswered).toBe(false);
  await until(async () => {
    clock.advance(1_000);
    return (await reservations(stage.gateway)) === 0;
  });
  // Both calls have been charged, so the budget is spent.
  expect((await next).data.code).toBe("credits_exhausted");
  expect(upstream.calls).toHaveLength(2);
  expect(await spent(stage.gateway)).toBe(CREDIT / 2);
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
});

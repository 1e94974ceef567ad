/** Busy providers that state when to try again: all the way from the header to the task. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { allEvents, outline } from "../support/events.ts";
import type { Behaviour } from "../support/fake-model.ts";
import {
  dispatch,
  ended,
  ledger,
  openEvents,
  type Stage,
  startStage,
  unsettled,
  until,
} from "../tasks/support.ts";

setDefaultTimeout(60_000);

/** Records each wait, so a test can advance time after the wait has begun. */
class NotingClock extends FakeClock {
  readonly waits: number[] = [];

  override after(ms: number, task: () => void): () => void {
    this.waits.push(ms);
    return super.after(ms, task);
  }
}

let stage: Stage;
const clock = new NotingClock();
beforeAll(async () => {
  stage = await startStage({ clock, tiers: { 1: ["a"], 2: ["a", "b"] }, timeoutMs: 6_000 });
  await stage.gateway.agent("plain");
  stage.upstream.script("b", { chunks: ["right"] });
});
afterAll(async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  await stage.stop();
});

const asked = () => stage.upstream.requests.filter(({ model }) => model === "a").length;
const busy = (headers: Record<string, string>, status = 429): Behaviour => ({ status, headers });
const running = async () => (await stage.gateway.call("GET", "/v1/workspace")).body.usage.tasks_running;

/** A model that is busy at the first call and then answers. */
function busyOnce(headers: Record<string, string>, status?: number): void {
  stage.upstream.script("a", (_, call) => (call === 0 ? busy(headers, status) : { chunks: ["at ", "last"] }));
}

/** Dispatches a task, and advances time by `ms` once the wait of `waitMs` has begun. */
async function runPast(ms: number, waitMs: number) {
  const before = asked();
  clock.waits.length = 0;
  const id = await dispatch(stage.gateway, { agent: "plain" });
  const reading = openEvents(stage.gateway, id).then(allEvents);
  await until(() => clock.waits.includes(waitMs));
  clock.advance(ms);
  return { id, reading, asked: () => asked() - before };
}

describe("a task with one model fails at once if Retry-After is", () => {
  test.each([
    ["missing", {}],
    ["longer than ten seconds", { "retry-after": "3600" }],
    ["longer than the provider's timeout", { "retry-after": "7" }],
  ])("%s", async (_, headers) => {
    busyOnce(headers as Record<string, string>);
    expect(await ended(stage.gateway, await dispatch(stage.gateway, { agent: "plain" }))).toMatchObject({
      status: "failed",
      error: { code: "model_unavailable" },
    });
    expect(await running()).toBe(0);
  });
});

test("another model answers without waiting", async () => {
  busyOnce({ "retry-after": "1" });
  const before = asked();
  const id = await dispatch(stage.gateway, { agent: "plain", tier: 2 });
  expect(await ended(stage.gateway, id)).toMatchObject({ status: "succeeded", output: "right" });
  expect(asked() - before).toBe(1);
});

test.each([429, 503])(
  "after %d the last model is called again when its time has come, and not before",
  async (status) => {
    busyOnce({ "retry-after": "3" }, status);
    const run = await runPast(2_999, 3_000);
    // Everything due has had its turn once a later call is served.
    for (let calls = 0; calls < 3; calls++) await stage.gateway.call("GET", "/v1/agents");
    expect(run.asked()).toBe(1);
    clock.advance(1);
    const events = await run.reading;
    expect(outline(events)).toEqual(["task.created", "task.started", "output.delta", "task.finished"]);
    const task = await ended(stage.gateway, run.id);
    expect(task).toMatchObject({ status: "succeeded", output: "at last", usage: { steps: 1 } });
    const calls = (await ledger(stage.gateway)).filter(
      (entry) => entry.task === run.id && entry.action === "model.call",
    );
    expect(calls.map(({ phase, outcome, code, detail }) => [phase, outcome, code, detail?.attempt])).toEqual([
      ["intent", "allowed", null, 1],
      ["outcome", "failed", status === 429 ? "rate_limited" : "http_503", undefined],
      ["intent", "allowed", null, 2],
      ["outcome", "succeeded", null, undefined],
    ]);
  },
);

test("a cancel during the wait ends the task, and the model is not called again", async () => {
  busyOnce({ "retry-after": "4" });
  const run = await runPast(1_000, 4_000);
  const cancelled = await stage.gateway.call("POST", `/v1/tasks/${run.id}/cancel`);
  expect(cancelled.status).toBe(200);
  expect((await run.reading).at(-1)?.data).toMatchObject({ status: "cancelled", output: null });
  clock.advance(10_000);
  expect(await running()).toBe(0);
  expect(run.asked()).toBe(1);
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { allEvents } from "../support/events.ts";
import {
  dispatch,
  ended,
  held,
  ledger,
  openEvents,
  run,
  type Stage,
  startStage,
  unsettled,
  until,
} from "./support.ts";

let stage: Stage;
let agents = 0;
let agent = "";

beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] }, limits: { concurrent_tasks: 1, enforcement: "enforced" } });
});
afterAll(() => stage.stop());
beforeEach(async () => {
  agent = `agent-${agents++}`;
  await stage.gateway.agent(agent);
});

const cancel = (id: string) => stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
const CANCELLED = { status: "cancelled", output: null, error: null };

describe("a cancel is refused", () => {
  test("for a task that does not exist", async () => {
    for (const id of ["task_0000000000000000000000000a", "nothing"]) {
      const answer = await cancel(id);
      expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    }
  });

  test("for a task that has succeeded, failed or been cancelled: 409 task_finished", async () => {
    stage.upstream.script("a", { chunks: ["ok"] });
    const succeeded = (await run(stage.gateway, { agent })).id;
    stage.upstream.script("a", { status: 500 });
    const failed = (await run(stage.gateway, { agent })).id;
    const hold = held();
    stage.upstream.script("a", hold.script);
    const cancelled = await dispatch(stage.gateway, { agent });
    await hold.asked;
    await cancel(cancelled);
    for (const id of [succeeded, failed, cancelled]) {
      const before = await ended(stage.gateway, id);
      const answer = await cancel(id);
      expect([answer.status, answer.body.code]).toEqual([409, "task_finished"]);
      expect(await ended(stage.gateway, id)).toEqual(before);
    }
  });
});

test("a running task is cancelled: the upstream call is closed, the events end, the next task runs", async () => {
  const { gateway, upstream } = stage;
  const hold = held({ chunks: ["half"] });
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent });
  const next = await dispatch(gateway, { agent });
  const reading = allEvents(await openEvents(gateway, id));
  await hold.asked;
  const request = upstream.requests.at(-1);
  upstream.script("a", { chunks: ["next"] });
  const answer = await cancel(id);
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ id, ...CANCELLED });
  await until(() => request?.aborted === true);
  const events = await reading;
  expect(events.at(-1)?.data).toEqual(answer.body);
  expect(await ended(gateway, next)).toMatchObject({ status: "succeeded", output: "next" });
});

test("a queued task is cancelled: it never starts, never reaches the upstream and costs nothing", async () => {
  const { gateway, upstream } = stage;
  const hold = held();
  upstream.script("a", hold.script);
  const first = await dispatch(gateway, { agent });
  const second = await dispatch(gateway, { agent });
  await hold.asked;
  const asked = upstream.requests.length;
  const answer = await cancel(second);
  expect(answer.body).toMatchObject({
    id: second,
    ...CANCELLED,
    started_at: null,
    model: null,
    credits_consumed: 0,
  });
  const events = await allEvents(await openEvents(gateway, second));
  expect(events.map(({ id, event }) => [id, event])).toEqual([
    [1, "task.created"],
    [2, "task.finished"],
  ]);
  hold.open();
  expect((await ended(gateway, first)).status).toBe("succeeded");
  expect(upstream.requests.length).toBe(asked);
});

test("many simultaneous cancels end a task once, queued or running", async () => {
  const { gateway, upstream } = stage;
  const hold = held();
  upstream.script("a", hold.script);
  const ids = [await dispatch(gateway, { agent }), await dispatch(gateway, { agent })];
  await hold.asked;
  for (const id of ids.reverse()) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => cancel(id)));
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
    for (const { status, body } of answers) {
      if (status === 200) expect(body).toMatchObject({ id, ...CANCELLED });
      else
        expect([status, body.code, body.detail]).toEqual([
          409,
          "task_finished",
          "The task has already ended (cancelled).",
        ]);
    }
  }
});

test("the stop button cancels its agent's queued and running tasks, and no others", async () => {
  const { gateway, upstream } = stage;
  await gateway.agent(`${agent}-other`);
  const hold = held();
  upstream.script("a", hold.script);
  const mine = [await dispatch(gateway, { agent }), await dispatch(gateway, { agent })];
  const other = await dispatch(gateway, { agent: `${agent}-other` });
  await hold.asked;
  const request = upstream.requests.at(-1);
  expect((await gateway.call("POST", `/v1/agents/${agent}/stop`)).body.status).toBe("stopped");
  for (const id of mine) {
    expect((await gateway.call("GET", `/v1/tasks/${id}`)).body).toMatchObject({
      status: "cancelled",
      error: { code: "agent_stopped", message: "The agent was stopped." },
    });
  }
  await until(() => request?.aborted === true);
  hold.open();
  expect((await ended(gateway, other)).status).toBe("succeeded");
  const refused = await gateway.call("POST", "/v1/tasks", { body: { agent, prompt: "hi" } });
  expect([refused.status, refused.body.code]).toEqual([409, "agent_stopped"]);
  await gateway.call("POST", `/v1/agents/${agent}/resume`);
  upstream.script("a", { chunks: ["again"] });
  expect((await run(gateway, { agent })).output).toBe("again");
});

test("no task outlives a stop that races with its dispatch", async () => {
  const { gateway, upstream } = stage;
  await gateway.call("PATCH", "/v1/workspace", { body: { limits: { concurrent_tasks: 5 } } });
  const hold = held();
  upstream.script("a", hold.script);
  const post = () => gateway.call("POST", "/v1/tasks", { body: { agent, prompt: "hi" } });
  const before = Array.from({ length: 10 }, post);
  const stop = gateway.call("POST", `/v1/agents/${agent}/stop`);
  const answers = await Promise.all([...before, ...Array.from({ length: 10 }, post)]);
  expect((await stop).status).toBe(200);
  for (const { status, body } of answers) {
    if (status === 202) expect((await ended(gateway, body.id)).status).toBe("cancelled");
    else expect([status, body.code]).toEqual([409, "agent_stopped"]);
  }
  hold.open();
});

test("removing an agent cancels its tasks", async () => {
  const { gateway, upstream } = stage;
  const hold = held();
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent });
  await hold.asked;
  expect((await gateway.call("DELETE", `/v1/agents/${agent}`)).status).toBe(204);
  expect((await ended(gateway, id)).status).toBe("cancelled");
});

test("afterwards every intent has exactly one outcome, and no slot is held", async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  const { usage } = (await stage.gateway.call("GET", "/v1/workspace")).body;
  expect([usage.tasks_running, usage.tasks_queued]).toEqual([0, 0]);
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { allEvents } from "../support/events.ts";
import { ended, ledger, type Stage, startStage } from "../tasks/support.ts";

const DAY_MS = 24 * 3_600_000;
const clock = new FakeClock();
let stage: Stage;
let other: string;

beforeAll(async () => {
  stage = await startStage({ clock, tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
  other = await stage.gateway.token({ scopes: ["tasks:write", "tasks:read"] });
});
afterAll(() => stage.stop());

const BODY = { agent: "plain", prompt: "hi", metadata: { a: "1", b: "2" } };
const post = (key: string, body: unknown = BODY, more: { token?: string; raw?: string } = {}) =>
  stage.gateway.call("POST", "/v1/tasks", { body, ...more, headers: { "idempotency-key": key } });
const count = async () => (await stage.gateway.call("GET", "/v1/tasks?limit=200")).body.data.length;

describe("a key is refused if it is", () => {
  test.each([
    ["empty", ""],
    ["too long", "k".repeat(256)],
    ["two words", "a b"],
    ["no ASCII", "schl\u00fcssel"],
  ])("%s", async (_name, key) => {
    const before = await count();
    const answer = await post(key);
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    expect(answer.body.errors).toMatchObject([{ path: "Idempotency-Key" }]);
    expect(await count()).toBe(before);
  });

  test("used with another body: 409, whatever differs", async () => {
    expect((await post("conflict")).status).toBe(202);
    const before = await count();
    const bodies = [
      { ...BODY, prompt: "ho" },
      { ...BODY, tier: 1 },
      { ...BODY, metadata: { a: "2", b: "1" } },
      { ...BODY, agent: "nobody" },
    ];
    for (const body of bodies) {
      const answer = await post("conflict", body);
      expect([answer.status, answer.body.code]).toEqual([409, "idempotency_conflict"]);
    }
    expect(await count()).toBe(before);
  });
});

test("the same key and body return the first task's id as a replay, whatever has become of the task", async () => {
  const first = await post("again");
  expect(first.headers.get("idempotency-replayed")).toBeNull();
  await ended(stage.gateway, first.body.id);
  const before = await count();
  const asked = stage.upstream.requests.length;
  for (let again = 0; again < 3; again++) {
    const answer = await post("again");
    expect([answer.status, answer.body]).toEqual([202, { id: first.body.id, status: "queued" }]);
    expect(answer.headers.get("idempotency-replayed")).toBe("true");
    expect(answer.headers.get("location")).toBe(`/v1/tasks/${first.body.id}`);
    const seq = answer.headers.get("gatehouse-ledger");
    const entry = (await stage.gateway.call("GET", `/v1/ledger/${seq}`)).body;
    expect(entry).toMatchObject({ phase: "single", outcome: "succeeded", task: first.body.id });
  }
  expect([await count(), stage.upstream.requests.length]).toEqual([before, asked]);
});

test("the order of keys and white space do not make a different body", async () => {
  const first = await post("order");
  const raw = `{ "metadata": {"b":"2", "a":"1"},\n "prompt": "h\\u0069", "agent":"plain" }`;
  const answer = await post("order", undefined, { raw });
  expect([answer.status, answer.body.id]).toEqual([202, first.body.id]);
});

test("a key belongs to its token", async () => {
  const mine = await post("shared");
  const theirs = await post("shared", { ...BODY, prompt: "theirs" }, { token: other });
  expect(theirs.status).toBe(202);
  expect(theirs.headers.get("idempotency-replayed")).toBeNull();
  expect(theirs.body.id).not.toBe(mine.body.id);
});

test("a refused request does not use up its key", async () => {
  expect((await post("spent", { ...BODY, tier: 7 })).body.code).toBe("unknown_tier");
  expect((await post("spent")).status).toBe(202);
});

test("50 simultaneous posts with one key create exactly one task", async () => {
  const before = await count();
  const body = { ...BODY, prompt: "in a rush" };
  const answers = await Promise.all(Array.from({ length: 50 }, () => post("rush", body)));
  expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(202));
  const ids = new Set(answers.map(({ body }) => body.id));
  expect(ids.size).toBe(1);
  expect(answers.filter(({ headers }) => headers.get("idempotency-replayed") === null).length).toBe(1);
  const [id = ""] = ids;
  expect((await ended(stage.gateway, id)).status).toBe("succeeded");
  const asked = stage.upstream.requests.filter((request) =>
    JSON.stringify(request.body).includes(body.prompt),
  );
  expect([await count(), asked.length]).toEqual([before + 1, 1]);
  const intents = (await ledger(stage.gateway)).filter(
    (entry) => entry.task === id && entry.action === "task.dispatch" && entry.phase === "intent",
  );
  expect(intents.length).toBe(1);
});

test("with stream=true a replay streams the first task", async () => {
  const send = () =>
    fetch(`${stage.gateway.url}/v1/tasks?stream=true`, {
      method: "POST",
      body: JSON.stringify(BODY),
      headers: {
        authorization: `Bearer ${stage.gateway.admin}`,
        "content-type": "application/json",
        "idempotency-key": "stream",
      },
    });
  const first = await send();
  const events = await allEvents(first);
  const again = await send();
  expect([first.status, again.status]).toEqual([200, 200]);
  expect(again.headers.get("gatehouse-task-id")).toBe(first.headers.get("gatehouse-task-id"));
  expect([first, again].map(({ headers }) => headers.get("idempotency-replayed"))).toEqual([null, "true"]);
  expect(await allEvents(again)).toEqual(events);
});

test("a key is kept for 24 hours and no longer", async () => {
  const first = await post("day");
  clock.setWall(clock.now() + DAY_MS - 1);
  expect((await post("day")).body.id).toBe(first.body.id);
  clock.setWall(clock.now() + 1);
  const second = await post("day", { ...BODY, prompt: "tomorrow" });
  expect([second.status, second.headers.get("idempotency-replayed")]).toEqual([202, null]);
  expect(second.body.id).not.toBe(first.body.id);
  clock.setWall(clock.now() + DAY_MS - 1);
  expect((await post("day", { ...BODY, prompt: "tomorrow" })).body.id).toBe(second.body.id);
});

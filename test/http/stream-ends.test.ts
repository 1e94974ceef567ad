/** A task's event streams end with the token or session that opened them, and the task continues. */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { OWN_PAGE, signIn } from "../access/session-support.ts";
import { FakeClock } from "../support/clock.ts";
import { type ReadEvent, readEvents } from "../support/events.ts";
import { dispatch, ended, type Gate, held, type Stage, startStage, until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

/** Long enough that the model's pending call does not time out. */
const PATIENCE_MS = 3_600_000;

let clock: FakeClock;
let stage: Stage;
let answer: Gate;
let task: string;
beforeAll(async () => {
  clock = new FakeClock();
  stage = await startStage({ clock, tiers: { 1: ["a"] }, timeoutMs: PATIENCE_MS });
  await stage.gateway.agent("owner");
});
afterAll(() => stage.stop());

/** Starts a task that does not end before `answer` is opened. */
beforeEach(async () => {
  const model = held({ chunks: ["said"] });
  answer = model;
  stage.upstream.script("a", model.script);
  task = await dispatch(stage.gateway, { agent: "owner" });
  await model.asked;
});
afterEach(() => answer.open());

interface Reading {
  readonly names: () => string[];
  readonly isOver: () => boolean;
}

async function read(
  headers: Record<string, string>,
  request: RequestInit = {},
  path?: string,
): Promise<Reading> {
  const url = stage.gateway.url + (path ?? `/v1/tasks/${task}/events`);
  const response = await fetch(url, {
    ...request,
    headers: { ...headers, "content-type": "application/json" },
  });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const events: ReadEvent[] = [];
  let isOver = false;
  void (async () => {
    for await (const event of readEvents(response)) events.push(event);
    isOver = true;
  })();
  const names = () => events.map(({ event }) => event);
  await until(() => names().includes("task.started"));
  return { names, isOver: () => isOver };
}

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
const status = async (headers: Record<string, string>) =>
  (await stage.gateway.call("GET", `/v1/tasks/${task}/events`, { token: null, headers })).status;

async function issue(request: object = {}): Promise<{ id: string; secret: string }> {
  const body = { name: "reading", scopes: ["tasks:read", "tasks:write"], ...request };
  return (await stage.gateway.call("POST", "/v1/tokens", { body })).body;
}

/** Streams that have ended did not receive the task's end, which comes later; the others do. */
async function expectEnded(gone: readonly Reading[], stay: readonly Reading[] = []): Promise<void> {
  await until(() => gone.every(({ isOver }) => isOver()));
  expect(stay.map(({ isOver }) => isOver())).toEqual(stay.map(() => false));
  answer.open();
  expect((await ended(stage.gateway, task)).status).toBe("succeeded");
  await until(() => stay.every(({ isOver }) => isOver()));
  for (const { names } of gone) expect(names()).not.toContain("task.finished");
  for (const { names } of stay) expect(names().at(-1)).toBe("task.finished");
}

describe("a stream of a task's events ends without the task's end, and another one continues,", () => {
  test("when its token is revoked", async () => {
    const { id, secret } = await issue();
    const [first, second] = [await read(bearer(secret)), await read(bearer(secret))];
    const other = await read(bearer(stage.gateway.admin));
    await stage.gateway.call("DELETE", `/v1/tokens/${id}`);
    await until(() => first.isOver() && second.isOver());
    expect(await status(bearer(secret))).toBe(401);
    await expectEnded([first, second], [other]);
  });

  test("when its browser signs out", async () => {
    const { secret } = await issue();
    const [leaving, staying] = [await signIn(stage.gateway, secret), await signIn(stage.gateway, secret)];
    const gone = await read({ cookie: leaving.cookie, ...OWN_PAGE });
    const stay = [await read({ cookie: staying.cookie, ...OWN_PAGE }), await read(bearer(secret))];
    expect((await leaving.ask("DELETE", "/v1/session")).status).toBe(204);
    await expectEnded([gone], stay);
  });

  test("when the grace period of its rotated secret is over, as does a stream of that secret's session", async () => {
    const { id, secret } = await issue();
    const browser = await signIn(stage.gateway, secret);
    const old = [await read(bearer(secret)), await read({ cookie: browser.cookie, ...OWN_PAGE })];
    const rotated = await stage.gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: { grace: "10s" } });
    const fresh = await read(bearer(rotated.body.secret));
    // Once a later stream has been answered, the change has been checked.
    expect(await read(bearer(secret)).then(({ isOver }) => isOver())).toBe(false);
    expect(old.map(({ isOver }) => isOver())).toEqual([false, false]);
    clock.advance(10_000);
    await expectEnded(old, [fresh]);
  });

  test("when its token expires", async () => {
    const short = await read(bearer((await issue({ expires_in: "30s" })).secret));
    const long = await read(bearer((await issue({ expires_in: "31s" })).secret));
    clock.advance(29_999);
    expect(short.isOver()).toBe(false);
    clock.advance(1);
    await expectEnded([short], [long]);
  });

  test("when its session expires", async () => {
    const browser = await signIn(stage.gateway, (await issue({ expires_in: "40s" })).secret);
    const reading = await read({ cookie: browser.cookie, ...OWN_PAGE });
    const { body } = await browser.ask("GET", "/v1/session");
    clock.advance(Date.parse(body.session.expires_at) - clock.now() - 1);
    expect(reading.isOver()).toBe(false);
    clock.advance(1);
    await expectEnded([reading]);
  });

  test("when its agent is archived", async () => {
    await stage.gateway.agent("leaving");
    const { secret } = await issue({ agent: "leaving", scopes: ["tasks:read", "tasks:write"] });
    const dispatched = { method: "POST", body: JSON.stringify({ agent: "leaving", prompt: "go on" }) };
    const reading = await read(bearer(secret), dispatched, "/v1/tasks?stream=true");
    await stage.gateway.call("DELETE", "/v1/agents/leaving");
    await until(() => reading.isOver());
    expect(await status(bearer(secret))).toBe(401);
  });

  test("even if it dispatched the task itself, which continues", async () => {
    const { id, secret } = await issue();
    const dispatched = { method: "POST", body: JSON.stringify({ agent: "owner", prompt: "go on" }) };
    const reading = await read(bearer(secret), dispatched, "/v1/tasks?stream=true");
    const { body } = await stage.gateway.call("GET", "/v1/tasks?limit=1");
    await stage.gateway.call("DELETE", `/v1/tokens/${id}`);
    await until(() => reading.isOver());
    expect(reading.names()).not.toContain("task.finished");
    answer.open();
    expect((await ended(stage.gateway, body.data[0].id)).status).toBe("succeeded");
  });
});

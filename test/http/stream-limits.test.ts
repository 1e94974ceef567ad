import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventStream } from "../../src/http/answer/sse.ts";
import { OpenStreams } from "../../src/http/streams/open-streams.ts";
import { FakeClock } from "../support/clock.ts";
import { until } from "../support/until.ts";
import { dispatch, held, type Stage, startStage } from "../tasks/support.ts";

const WORKSPACE_STREAMS = 2_000;

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

test("streams are counted per workspace and in total, and each is released once", () => {
  const streams = new OpenStreams(2, 3);
  const first = streams.take(1);
  streams.take(1);
  expect(() => streams.take(1)).toThrow("The workspace already has 2 open streams.");
  streams.take(2);
  first.release();
  first.release();
  streams.take(2);
  expect(() => streams.take(1)).toThrow("too many open streams");
});

test("beyond 2,000 streams of a workspace the next is 429 and dispatches nothing; closing one makes room", async () => {
  const { gateway, upstream } = stage;
  const hold = held();
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  const headers = { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" };
  const ask = (path: string, init: RequestInit = {}) =>
    gateway.gateway.handle(new Request(`http://gate${path}`, { headers, ...init }));
  const clients = Array.from({ length: WORKSPACE_STREAMS }, () => new AbortController());
  const opened = await Promise.all(
    clients.map(({ signal }) => ask(`/v1/tasks/${id}/events`, { signal }).then(({ status }) => status)),
  );
  expect(new Set(opened)).toEqual(new Set([200]));
  const create = () =>
    ask("/v1/tasks?stream=true", {
      method: "POST",
      body: JSON.stringify({ agent: "plain", prompt: "one more" }),
    });
  for (const refused of [await ask(`/v1/tasks/${id}/events`), await create()]) {
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    expect(await refused.json()).toMatchObject({ code: "rate_limited" });
  }
  expect((await gateway.call("GET", "/v1/tasks")).body.data).toHaveLength(1);
  clients[0]?.abort();
  // The server notices only after a while that a client has left.
  await until(async () => (await create()).status === 200);
  for (const client of clients) client.abort();
  hold.open();
}, 60_000);

/** An endless stream that only the test reads. With a socket, the result would depend on its buffers. */
function endlessStream() {
  const time = new FakeClock();
  const seen = { closed: false, expired: 0, ended: 0 };
  const reader = {
    next: async () => (seen.closed ? null : [new Uint8Array(64)]),
    close() {
      seen.closed = true;
    },
  };
  const response = eventStream(reader, new AbortController().signal, {}, time, {
    expire: () => seen.expired++,
    ended: () => seen.ended++,
  });
  /** Advances time second by second, and lets whatever waits for it proceed. */
  async function pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      time.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return { response, seen, pass };
}

test("a reader that reads nothing is ended after five minutes, and not before", async () => {
  const { seen, pass } = endlessStream();
  await pass(295);
  expect(seen).toEqual({ closed: false, expired: 0, ended: 0 });
  await pass(10);
  expect(seen).toEqual({ closed: true, expired: 1, ended: 1 });
});

test("a reader that reads a little from time to time is not ended", async () => {
  const { response, seen, pass } = endlessStream();
  const body = response.body?.getReader();
  for (let round = 0; round < 5; round++) {
    await pass(200);
    await body?.read();
    await body?.read();
  }
  expect(seen).toEqual({ closed: false, expired: 0, ended: 0 });
  await body?.cancel().catch(() => {});
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { OpenStreams } from "../../src/http/sse.ts";
import { FakeClock } from "../support/clock.ts";
import { dispatch, held, type Stage, startStage } from "../tasks/support.ts";
import { rawRequest } from "./stream-support.ts";

const WORKSPACE_STREAMS = 2_000;
const clock = new FakeClock();
let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] }, clock });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

test("places are counted by workspace and over all, and given back once", () => {
  const streams = new OpenStreams(2, 3);
  const first = streams.take(1, "a");
  streams.take(1, "b");
  expect(() => streams.take(1, "c")).toThrow("The workspace has 2 streams open.");
  streams.take(2, "d");
  expect(() => streams.take(3, "e")).toThrow("no more streams");
  first();
  first();
  streams.take(3, "e");
  expect(() => streams.take(1, "f")).toThrow("no more streams");
});

test("past 2,000 streams of a workspace the next is 429, and dispatches nothing; one that leaves makes room", async () => {
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
  await Bun.sleep(5);
  expect((await create()).status).toBe(200);
  for (const client of clients) client.abort();
  hold.open();
}, 60_000);

test("a reader that takes nothing for five minutes is ended", async () => {
  const { gateway, upstream } = stage;
  upstream.script("a", { chunks: Array.from({ length: 900 }, () => "\u0001".repeat(900)) });
  const id = await dispatch(gateway, { agent: "plain" });
  const other = await fetch(`${gateway.url}/v1/tasks/${id}/events`, {
    headers: { authorization: `Bearer ${gateway.admin}` },
  });
  const pulse = setInterval(() => clock.advance(25), 1);
  await other.text();
  const client = rawRequest(gateway, { path: `/v1/tasks/${id}/events` });
  await client.saw("task.created");
  client.socket.pause();
  await Bun.sleep(200);
  clearInterval(pulse);
  for (let index = 0; index < 310; index++) {
    clock.advance(1_000);
    await Bun.sleep(0);
  }
  // Bun looks at its timeouts every four seconds.
  await Bun.sleep(6_000);
  client.socket.resume();
  await client.ended();
  expect(client.body()).not.toContain("event: task.finished");
}, 60_000);

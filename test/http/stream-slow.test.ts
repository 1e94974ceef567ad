import { afterAll, beforeAll, expect, test } from "bun:test";
import { allEvents } from "../support/events.ts";
import { dispatch, ended, openEvents, type Stage, startStage } from "../tasks/support.ts";
import { type RawClient, rawRequest } from "./stream-support.ts";

const MIB = 1024 * 1024;
const SLOW_READERS = 40;
/** In JSON each of these takes six bytes, so the stream has about 5 MB. */
const CHUNK = "\u0001".repeat(900);
const CHUNKS = 900;

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

/** Stops reading as soon as the stream is open. */
async function slow(id: string): Promise<RawClient> {
  const client = rawRequest(stage.gateway, { path: `/v1/tasks/${id}/events` });
  await client.saw("task.created");
  client.socket.pause();
  return client;
}

test("readers that do not read delay neither the task nor others, and do not each cost a copy of the stream", async () => {
  const { gateway, upstream } = stage;
  const { promise: start, resolve: begin } = Promise.withResolvers<void>();
  const chunks = Array.from({ length: CHUNKS }, () => CHUNK);
  upstream.script("a", (_request, call) =>
    call === 0
      ? { toolCalls: [{ name: "time__now", arguments: {} }], gate: start }
      : { chunks, usage: { prompt_tokens: 1, completion_tokens: 1 } },
  );
  const id = await dispatch(gateway, { agent: "plain", tools: ["time.now"] });
  const idle = await Promise.all(Array.from({ length: SLOW_READERS }, () => slow(id)));
  const quick = openEvents(gateway, id).then(allEvents);
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  begin();
  const events = await quick;
  const task = await ended(gateway, id);
  expect(task).toMatchObject({ status: "succeeded", model: "up/a" });
  expect(task.output.length).toBe(CHUNK.length * CHUNKS);
  expect(events.at(-1)?.data.output).toBe(task.output);
  Bun.gc(true);
  const grown = process.memoryUsage.rss() - before;
  // Forty copies would be about 400 MB, with the output in task.finished.
  expect(grown / MIB).toBeLessThan(200);

  const [first, ...others] = idle;
  for (const client of others) client.socket.destroy();
  first?.socket.resume();
  await first?.ended();
  const text = first?.body() ?? "";
  expect(text.match(/\\u0001/g)?.length).toBe(2 * CHUNK.length * CHUNKS); // once in deltas, once in task.finished
  expect(text.match(/^event: task\.finished$/gm)?.length).toBe(1);
  expect(text.match(/^id: \d+$/gm)?.length).toBe(events.length);
}, 60_000);

test("a late reader that does not read does not prevent others from resuming", async () => {
  const { gateway } = stage;
  const { data } = (await gateway.call("GET", "/v1/tasks?limit=1")).body;
  const clients = await Promise.all(Array.from({ length: 8 }, () => slow(data[0].id)));
  const [delta] = await allEvents(await openEvents(gateway, data[0].id, { "last-event-id": "50" }));
  expect(delta?.id).toBe(51);
  for (const client of clients) client.socket.resume();
  const bodies = await Promise.all(
    clients.map(async (client) => {
      await client.ended();
      // On a busy machine, some are quiet for longer than others.
      return client.body().replaceAll(": keep-alive\n\n", "");
    }),
  );
  expect(new Set(bodies).size).toBe(1);
}, 60_000);

/** Readers of a task's events that read nothing or next to nothing, while others read as fast as they can. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type RawClient, rawRequest } from "../http/stream-support.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents, type ReadEvent } from "../support/events.ts";
import { dispatch, ended, openEvents, type Stage, startStage } from "../tasks/support.ts";

setDefaultTimeout(120_000);

const MIB = 1024 * 1024;
const SLOW_READERS = 50;
/** In JSON each of these takes six bytes: about 5 MB of deltas, and as much again in `task.finished`. */
const CHUNK = "\u0001".repeat(900);
const CHUNKS = 900;
/** A reader that reads nothing for this long is disconnected (`STALL_MS` in `http/answer/sse.ts`). */
const STALL_MS = 5 * 60_000;

let stage: Stage;
const clock = new FakeClock();
let timer: Timer;
/** How fast time passes: milliseconds of the gateway's clock per tick (5 ms) of the timer. */
let pace = 25;

beforeAll(async () => {
  stage = await startStage({ clock, tiers: { 1: ["a"] }, timeoutMs: 3_600_000 });
  await stage.gateway.agent("plain");
  timer = setInterval(() => clock.advance(pace), 5);
});
afterAll(async () => {
  clearInterval(timer);
  await stage.stop();
});

/** A task whose long answer waits until `begin` is called. */
async function longTask(): Promise<{ readonly id: string; begin(): void }> {
  const { promise: start, resolve: begin } = Promise.withResolvers<void>();
  const chunks = Array.from({ length: CHUNKS }, () => CHUNK);
  stage.upstream.script("a", (_request, call) =>
    call === 0 ? { toolCalls: [{ name: "time__now", arguments: {} }], gate: start } : { chunks },
  );
  return { id: await dispatch(stage.gateway, { agent: "plain", tools: ["time.now"] }), begin };
}

/** Opens the stream, and reads nothing once it has begun. */
async function opened(id: string): Promise<RawClient> {
  const client = rawRequest(stage.gateway, { path: `/v1/tasks/${id}/events` });
  await client.saw("task.created");
  client.socket.pause();
  return client;
}

/** The complete events in a text that may end anywhere. */
function eventsOf(text: string): ReadEvent[] {
  return text
    .slice(0, text.lastIndexOf("\n\n") + 2)
    .split("\n\n")
    .filter((frame) => frame.startsWith("id: "))
    .map((frame) => {
      const [id = "", event = "", data = ""] = frame
        .split("\n")
        .map((line) => line.slice(line.indexOf(": ") + 2));
      return { id: Number(id), event, data: JSON.parse(data) };
    });
}

const read = async (id: string, after?: number) =>
  allEvents(
    await openEvents(stage.gateway, id, after === undefined ? {} : { "last-event-id": String(after) }),
  );

/** Everything that arrived here until the stream or the connection ended. */
async function whole(client: RawClient): Promise<string> {
  client.socket.resume();
  await client.ended();
  return client.body();
}

/**
 * The first client that was disconnected before the end of its stream. A client that does not read gets no notice, so
 * they are checked one after another. A client that is checked too early reads the rest, and does not count.
 */
async function firstLetGo(clients: readonly RawClient[]): Promise<RawClient> {
  for (const client of clients) {
    await Bun.sleep(400);
    if (!(await whole(client)).includes("event: task.finished")) return client;
  }
  throw new Error("none of them was let go");
}

test("fifty readers that read nothing delay neither the task nor others, cost little, and are disconnected", async () => {
  const { id, begin } = await longTask();
  const idle = await Promise.all(Array.from({ length: SLOW_READERS }, () => opened(id)));
  const fast = [read(id), read(id)];
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  begin();
  const [events = [], others] = await Promise.all(fast);
  const task = await ended(stage.gateway, id);
  expect(task).toMatchObject({ status: "succeeded" });
  expect(task.output.length).toBe(CHUNK.length * CHUNKS);
  expect(events.at(-1)).toMatchObject({ event: "task.finished", data: task });
  expect(others).toEqual(events);
  Bun.gc(true);
  // A copy for each reader would be about 500 MB.
  expect((process.memoryUsage.rss() - before) / MIB).toBeLessThan(200);

  // The next task is not delayed either.
  stage.upstream.script("a", { chunks: ["next"] });
  expect(await ended(stage.gateway, await dispatch(stage.gateway, { agent: "plain" }))).toMatchObject({
    output: "next",
  });

  pace = STALL_MS / 20;
  const left = await firstLetGo(idle);
  pace = 25;
  for (const client of [left, ...idle.slice(-2)]) {
    const first = eventsOf(await whole(client));
    const last = first.at(-1);
    const rest = last?.event === "task.finished" ? [] : await read(id, last?.id);
    expect([...first, ...rest]).toEqual(events);
  }
  for (const { socket } of idle) socket.destroy();
});

test("a reader that reads little at a time gets the whole stream, and one that leaves early affects nobody", async () => {
  const { id, begin } = await longTask();
  const [trickle, leaver] = [await opened(id), await opened(id)];
  begin();
  const events = await read(id);
  leaver.socket.destroy();
  // Reads one piece, then nothing for a while, until the stream has ended.
  let pieces = 0;
  trickle.socket.on("data", () => {
    pieces += 1;
    trickle.socket.pause();
    setTimeout(() => trickle.socket.resume(), 5);
  });
  trickle.socket.resume();
  await trickle.ended();
  expect(pieces).toBeGreaterThan(20);
  expect(eventsOf(trickle.body())).toEqual(events);
  expect((await stage.gateway.call("GET", "/v1/workspace")).body.usage.tasks_running).toBe(0);
});

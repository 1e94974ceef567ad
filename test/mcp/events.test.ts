import { describe, expect, test } from "bun:test";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import fc from "fast-check";
import { SessionEventMemory, SessionEvents } from "../../src/mcp/events.ts";

const answer = (id: number, text = "x"): JSONRPCMessage => ({ jsonrpc: "2.0", id, result: { text } });

async function replay(events: SessionEvents, after: string): Promise<{ stream: string; sent: string[] }> {
  const sent: string[] = [];
  const stream = await events.replayEventsAfter(after, {
    send: async (id, message) => void sent.push(`${id} ${JSON.stringify(message)}`),
  });
  return { stream, sent };
}

test("all sessions' stored events have a limit, and are freed", async () => {
  const memory = new SessionEventMemory();
  const sessions = Array.from({ length: 300 }, (_, at) => new SessionEvents(memory, at % 3));
  for (const session of sessions) await session.storeEvent("a", answer(1, "x".repeat(250_000)));
  expect(memory.held).toBeLessThanOrEqual(64 * 1024 * 1024);
  expect(sessions.at(-1)?.size.events).toBe(0);
  sessions[0]?.forget();
  await sessions.at(-1)?.storeEvent("a", answer(2, "x".repeat(250_000)));
  expect(sessions.at(-1)?.size.events).toBe(1);
  for (const session of sessions) session.forget();
  expect(memory.held).toBe(0);
});

test("one workspace's sessions leave half of it for others", async () => {
  const memory = new SessionEventMemory();
  const hog = Array.from({ length: 300 }, () => new SessionEvents(memory, 1));
  for (const session of hog) await session.storeEvent("a", answer(1, "x".repeat(250_000)));
  expect(memory.held).toBeLessThanOrEqual(32 * 1024 * 1024);
  const other = new SessionEvents(memory, 2);
  await other.storeEvent("a", answer(1, "x".repeat(250_000)));
  expect(other.size.events).toBe(1);
  for (const session of hog) session.forget();
  other.forget();
  expect(memory.held).toBe(0);
});

test("deeply nested messages are counted completely", async () => {
  const events = new SessionEvents(new SessionEventMemory(), 1);
  let deep: object = { text: "x".repeat(200_000) };
  for (let level = 0; level < 50; level++) deep = { deep };
  await events.storeEvent("a", { jsonrpc: "2.0", id: 1, result: { deep } });
  expect(events.size.characters).toBeGreaterThan(200_000);
});

describe("a resumed stream", () => {
  test("is refused for an event that never existed, or is no longer stored", async () => {
    const events = new SessionEvents(new SessionEventMemory(), 1);
    await events.storeEvent("a", answer(1));
    for (const id of ["2", "0", "", "-1", "1 ", "one"]) {
      expect(await events.getStreamIdForEventId(id)).toBeUndefined();
      await expect(replay(events, id)).rejects.toThrow("no longer available");
    }
    for (let more = 0; more < 64; more++) await events.storeEvent("a", answer(more));
    await expect(replay(events, "1")).rejects.toThrow("no longer available");
  });

  test("gets its own stream's later events, in order, and no other stream's", async () => {
    const events = new SessionEvents(new SessionEventMemory(), 1);
    await events.storeEvent("a", answer(1));
    await events.storeEvent("b", answer(2));
    await events.storeEvent("a", answer(3));
    await events.storeEvent("b", answer(4));
    expect(await replay(events, "1")).toEqual({ stream: "a", sent: [`3 ${JSON.stringify(answer(3))}`] });
    expect(await replay(events, "3")).toEqual({ stream: "a", sent: [] });
    expect(await replay(events, "2")).toEqual({ stream: "b", sent: [`4 ${JSON.stringify(answer(4))}`] });
  });

  test("is not sent the first event again, which carries no message", async () => {
    const events = new SessionEvents(new SessionEventMemory(), 1);
    // The SDK stores this to have an id from which to resume.
    const priming = await events.storeEvent("a", {} as JSONRPCMessage);
    await events.storeEvent("a", {} as JSONRPCMessage);
    await events.storeEvent("a", answer(1));
    expect((await replay(events, priming)).sent).toEqual([`3 ${JSON.stringify(answer(1))}`]);
  });
});

describe("the store of events", () => {
  test("drops answers that are too large, and keeps the others", async () => {
    const events = new SessionEvents(new SessionEventMemory(), 1);
    await events.storeEvent("a", answer(1));
    const id = await events.storeEvent("a", answer(2, "x".repeat(256 * 1024)));
    expect(id).toBe("2");
    expect(await events.getStreamIdForEventId("2")).toBeUndefined();
    expect(await events.getStreamIdForEventId("1")).toBe("a");
  });

  test("respects its limits, whatever is stored, and ids never repeat", async () => {
    const text = fc.integer({ min: 0, max: 100_000 });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 120 }), async (lengths) => {
        const events = new SessionEvents(new SessionEventMemory(), 1);
        const ids = new Set<string>();
        for (const length of lengths) {
          ids.add(await events.storeEvent("a", answer(1, "x".repeat(length))));
          expect(events.size.events).toBeLessThanOrEqual(64);
          expect(events.size.characters).toBeLessThanOrEqual(256 * 1024);
          expect(events.size.characters).toBeGreaterThanOrEqual(0);
        }
        expect(ids.size).toBe(lengths.length);
      }),
      { numRuns: 30 },
    );
  });
});

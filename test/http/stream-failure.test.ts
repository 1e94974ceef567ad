import { expect, test } from "bun:test";
import { eventStream } from "../../src/http/answer/sse.ts";
import type { EventReader } from "../../src/tasks/events/hub.ts";
import { FakeClock } from "../support/clock.ts";

const encoder = new TextEncoder();

/** A reader that returns these texts, and then waits until it is closed or told to fail. */
function readerOf(texts: readonly string[]) {
  const left = [...texts];
  const { promise, resolve, reject } = Promise.withResolvers<null>();
  let closed = 0;
  const reader: EventReader = {
    async next() {
      const text = left.shift();
      return text === undefined ? promise : [encoder.encode(text)];
    },
    close() {
      closed++;
      resolve(null);
    },
  };
  return { reader, fail: reject, closed: () => closed };
}

const ENDS = { expire: () => {}, ended: () => {} };

test("a reader that fails ends the stream, so the client can resume it", async () => {
  const source = readerOf(["id: 1\n\n"]);
  const response = eventStream(source.reader, new AbortController().signal, {}, new FakeClock(), ENDS);
  source.fail(new Error("disk"));
  expect(await response.text()).toBe(": open\n\nid: 1\n\n");
  expect(source.closed()).toBeGreaterThan(0);
});

test("a client that has left ends the reading, even one that left before it began", async () => {
  for (const isEarly of [true, false]) {
    const source = readerOf([]);
    const control = new AbortController();
    if (isEarly) control.abort();
    const response = eventStream(source.reader, control.signal, {}, new FakeClock(), ENDS);
    control.abort();
    expect(await response.text()).toBe(": open\n\n");
    expect(source.closed()).toBeGreaterThan(0);
  }
});

test("a cancelled stream survives a pending keep-alive", async () => {
  const clock = new FakeClock();
  const source = readerOf(["id: 1\n\n"]);
  const response = eventStream(source.reader, new AbortController().signal, {}, clock, ENDS);
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel().catch(() => {});
  clock.advance(60_000);
  expect(response.status).toBe(200);
});

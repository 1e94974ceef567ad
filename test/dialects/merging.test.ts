/** Streams that end together, as after a stop: how many of their answers are merged at the same time. */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import type { StreamReader } from "../../src/dialects/dialect.ts";
import { PassingStream, type PassingStreamParts } from "../../src/dialects/passing-stream.ts";
import { until } from "../support/until.ts";

const STREAMS = 12;

/** The most answers of these sizes, one for each stream, that are merged at once when all streams end. */
async function mostMergedAtOnce(bytes: number, workspaceOf: (stream: number) => number): Promise<number> {
  let [merging, most, ended] = [0, 0, 0];
  const stop = new AbortController();
  const reader: StreamReader = {
    firstToRead: () => -1,
    read: () => "pass",
    usage: null,
    async answerOf() {
      most = Math.max(most, ++merging);
      await new Promise((resolve) => setTimeout(resolve, 5));
      merging--;
      return { text: "", isWhole: false, textBytes: 0 };
    },
  };
  const streams = Array.from({ length: STREAMS }, (_, index) => {
    const parts = [Buffer.from(`data: ${"x".repeat(bytes)}\n\n`)];
    const attempt = {
      call: { caller: { workspaceId: workspaceOf(index) } },
      begins() {},
      settle: async () => null,
    };
    return new PassingStream({
      api: { errorEvent: () => "" },
      attempt: attempt as unknown as PassingStreamParts["attempt"],
      answer: {
        ...{ status: 200, headers: new Headers(), hide: (text: string) => text, end() {} },
        read: async () => parts.shift() ?? new Promise<undefined>(() => {}),
      },
      ...{ reader, requestId: "req", clock: systemClock, abort: stop, interruption: () => null },
      ended: () => ended++,
    });
  });
  for (const stream of streams) {
    await stream.begin();
    stream.body();
  }
  stop.abort();
  await until(() => ended === STREAMS);
  return most;
}

test("the long answers of a workspace are merged one after another", async () => {
  expect(await mostMergedAtOnce(300_000, () => 1)).toBe(1);
});

test("another workspace's answers do not wait for them", async () => {
  expect(await mostMergedAtOnce(300_000, (stream) => stream % 3)).toBe(3);
});

test("short answers do not wait for each other", async () => {
  expect(await mostMergedAtOnce(1_000, () => 1)).toBe(STREAMS);
});

/**
 * The total size of the answers in progress is bounded: past the bound the longest fails, and the others continue.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { AnswerTooLarge } from "../../src/agents/index.ts";
import { systemClock } from "../../src/base/clock.ts";
import { AnswerMemory } from "../../src/models/answer-memory.ts";
import { cappedFetch } from "../../src/models/capped-fetch.ts";

const KIB = 1024;
/** An event of 1 KiB. */
const EVENT = new TextEncoder().encode(`data: ${"x".repeat(KIB - 8)}\n\n`);

let server: Bun.Server<undefined>;
let fetching: typeof fetch;
beforeEach(() => {
  // 4 KiB of each answer do not count, and all answers together may have 16 KiB more.
  fetching = cappedFetch("openai", systemClock, new AnswerMemory(4 * KIB, 16 * KIB));
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      let left = Number(new URL(url).searchParams.get("events"));
      const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
        if (left-- > 0) controller.enqueue(EVENT);
        // `hang` answers stay open.
        else if (url.includes("hang")) await new Promise(() => {});
        else controller.close();
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), {
        headers: { "content-type": "text/event-stream" },
      });
    },
  });
});
afterEach(() => server.stop(true));

const open = async (query: string) => {
  const { body } = await fetching(`${server.url}?${query}`);
  if (!body) throw new Error("no body");
  return body.getReader();
};
type Reader = Awaited<ReturnType<typeof open>>;
const read = async (reader: Reader, bytes: number): Promise<void> => {
  for (let count = 0; count < bytes; ) count += (await reader.read()).value?.length ?? Number.NaN;
};
const rest = async (reader: Reader): Promise<unknown> => {
  for (;;) {
    const part = await reader.read().catch((error: unknown) => error as Error);
    if (part instanceof Error) return part;
    if (part.done) return "ended";
  }
};

test("past the bound, the longest answer fails at once, even if it is silent, and the others continue", async () => {
  const longest = await open("events=16&hang");
  await read(longest, 16 * KIB);
  const waiting = rest(longest);
  const shorter = await open("events=12");
  expect(await rest(shorter)).toBe("ended");
  expect(await waiting).toBeInstanceOf(AnswerTooLarge);
});

test("a single answer beyond the bound fails", async () => {
  expect(await rest(await open("events=21"))).toBeInstanceOf(AnswerTooLarge);
  expect(await rest(await open("events=20"))).toBe("ended");
});

test("any number of ordinary answers are read alongside answers that fill the room", async () => {
  const long = await open("events=20&hang");
  await read(long, 20 * KIB);
  const ordinary = await Promise.all(Array.from({ length: 32 }, () => open("events=4&hang")));
  for (const reader of ordinary) await read(reader, 4 * KIB);
  await Promise.all([long, ...ordinary].map((reader) => reader.cancel()));
});

test("answers that ended, failed or were abandoned take no room", async () => {
  for (let round = 0; round < 3; round++) {
    expect(await rest(await open("events=20"))).toBe("ended");
    expect(await rest(await open("events=21"))).toBeInstanceOf(AnswerTooLarge);
    const left = await open("events=20&hang");
    await read(left, 20 * KIB);
    await left.cancel();
  }
});

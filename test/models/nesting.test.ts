/** A provider's answers are checked for depth and size before they are parsed, whatever type they claim to have. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { AnswerTooLarge } from "../../src/agents/index.ts";
import { systemClock } from "../../src/base/clock.ts";
import { JsonTooLarge } from "../../src/base/json-limits.ts";
import { cappedFetch } from "../../src/models/capped-fetch.ts";
import { boundedFetch } from "../../src/models/embed/fetch.ts";

const lists = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

let server: Bun.Server<undefined>;
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { searchParams } = new URL(request.url);
      const headers = { "content-type": searchParams.get("type") ?? "" };
      return new Response(await request.text(), { status: Number(searchParams.get("status")), headers });
    },
  });
});
afterAll(() => server.stop(true));

const ask = (asked: typeof fetch, status: number, type: string, body: string): Promise<Response> =>
  asked(`${server.url}?${new URLSearchParams({ status: String(status), type })}`, { method: "POST", body });
const reading = async (answer: Promise<Response>): Promise<unknown> =>
  (await answer).text().catch((error: unknown) => error);

test.each([
  ["an event", 200, "text/event-stream", `data: ${lists(45_000)}\n\n`],
  ["an event that calls itself JSON", 200, "application/json", `: "\ndata: ${lists(45_000)}\n\n`],
  ["JSON", 200, "application/json", lists(45_000)],
  ["an error", 500, "application/json", lists(45_000)],
  ["an error that calls itself a stream", 400, "text/event-stream", lists(45_000)],
])("%s of a model, nested 45,000 deep", async (_, status, type, body) => {
  expect(
    await reading(ask(cappedFetch("openai-compatible", systemClock), status, type, body)),
  ).toBeInstanceOf(JsonTooLarge);
});

test.each([["application/json"], ["text/event-stream"]])(
  "vectors nested 45,000 deep, as %s",
  async (type) => {
    expect(await reading(ask(boundedFetch(systemClock), 200, type, lists(45_000)))).toBeInstanceOf(
      JsonTooLarge,
    );
    expect(await reading(ask(boundedFetch(systemClock), 200, type, lists(100)))).toBe(lists(100));
  },
);

const integers = (count: number): string =>
  `{${Array.from({ length: count }, (_, index) => `"${index * 7_919}":0`).join()}}`;

test.each([
  ["an event", 200, "text/event-stream", `data: ${integers(12_501)}\n\n`],
  ["JSON", 200, "application/json", integers(12_501)],
  ["an error", 500, "application/json", integers(12_501)],
])("%s of a model, of 12,501 integers as names", async (_, status, type, body) => {
  expect(await reading(ask(cappedFetch("openai", systemClock), status, type, body))).toBeInstanceOf(
    JsonTooLarge,
  );
});

test("vectors of many numbers are accepted, vectors of many texts are not", async () => {
  const vectors = `{"data":[${`{"embedding":[${"0.1,".repeat(1_535)}0.1]},`.repeat(63)}{"embedding":[]}]}`;
  expect(await reading(ask(boundedFetch(systemClock), 200, "application/json", vectors))).toBe(vectors);
  const texts = `{"data":[${'"",'.repeat(50_000)}""]}`;
  expect(await reading(ask(boundedFetch(systemClock), 200, "application/json", texts))).toBeInstanceOf(
    JsonTooLarge,
  );
});

test("an error labelled as a stream is capped as a whole, not per event", async () => {
  const body = `${"x".repeat(1_000_000)}\n\n`.repeat(17);
  expect(
    await reading(ask(cappedFetch("openai-compatible", systemClock), 500, "text/event-stream", body)),
  ).toBeInstanceOf(AnswerTooLarge);
  expect(
    await reading(ask(cappedFetch("openai-compatible", systemClock), 200, "text/event-stream", body)),
  ).toBe(body);
});

/** An event whose JSON has this many members. */
const wide = (members: number): string => `data: [${"0,".repeat(members - 1)}0]\n\n`;

test.each([
  ["openai-compatible", 4_096],
  ["anthropic", 4_096],
  ["openai", 50_000],
  ["google", 50_000],
] as const)("an event of %s may have %d members, and so may an error", async (kind, members) => {
  const capped = cappedFetch(kind, systemClock);
  for (const [status, type] of [
    [200, "text/event-stream"],
    [500, "application/json"],
  ] as const) {
    expect(await reading(ask(capped, status, type, wide(members + 1)))).toBeInstanceOf(JsonTooLarge);
    expect(await reading(ask(capped, status, type, wide(members)))).toBe(wide(members));
  }
  expect(await reading(ask(capped, 200, "text/event-stream", wide(members).repeat(3)))).toBe(
    wide(members).repeat(3),
  );
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { allEvents, type ReadEvent } from "../support/events.ts";
import { dispatch, ended, openEvents, type Stage, startStage } from "../tasks/support.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

const textOf = (events: readonly ReadEvent[]) =>
  events.map(({ event, data }) => (event === "output.delta" ? data.text : "")).join("");

/** Runs the task and compares every report of its output with the text. */
async function expectOutput(text: string): Promise<ReadEvent[]> {
  const id = await dispatch(stage.gateway, { agent: "plain" });
  const live = await allEvents(await openEvents(stage.gateway, id));
  const task = await ended(stage.gateway, id);
  expect(task.status).toBe("succeeded");
  expect(textOf(live) === text).toBe(true);
  expect(task.output === text).toBe(true);
  expect(live.at(-1)?.data).toEqual(task);
  expect(await allEvents(await openEvents(stage.gateway, id))).toEqual(live);
  expect(live.map(({ id }) => id)).toEqual(live.map((_event, index) => index + 1));
  for (const { event, data } of live)
    if (event === "output.delta") expect(data.text.isWellFormed()).toBe(true);
  return live;
}

function chat(delta: string): string {
  const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "a" };
  const choices = [{ index: 0, delta: { content: delta }, finish_reason: null }];
  return `data: ${JSON.stringify({ ...chunk, choices })}\n\n`;
}
const FINISH = `data: ${JSON.stringify({ id: "1", created: 1, model: "a", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`;

describe("text arrives as it was sent:", () => {
  test.each([
    ["a field of our own", ["id: 5"]],
    ["a frame's ending", ["a\n\n", "\n\nb"]],
    ["a whole frame", ["\n\nid: 99\nevent: task.finished\ndata: {}\n\n"]],
    ["data lines", ["data:", " {}\ndata: x"]],
    ["carriage returns", ["\r", "\r\n", "\r\n\r\n"]],
    ["line and paragraph separators", ["\u2028", "a\u2029b", "\u0085"]],
    ["the upstream's own ending", ["[DONE]", "data: [DONE]\n\n"]],
    ["a comment", [": keep-alive\n\n"]],
    ["a byte order mark and NUL", ["\ufeff", "\u0000", "\ufeffx"]],
    ["only white space", [" ", "\n", "\t"]],
    ["emoji, whole and joined", ["😀", "👩‍👩‍👧", "🇩🇪"]],
    ["surrogate halves over two deltas", ["x\ud83d", "\ude00y"]],
    ["surrogate halves with nothing in between", ["\ud83d", "\ude00", "\ud83d", "\ude00"]],
    ["100 kB in one token", ["é".repeat(50_000)]],
    ["300 kB of escape sequences", ["\u0001".repeat(50_000)]],
  ])("%s", async (...[, chunks]) => {
    stage.upstream.script("a", { chunks });
    await expectOutput(chunks.join(""));
  });
});

test.each([
  [["a\ud83d"], "a\ufffd"],
  [["\ude00b"], "\ufffdb"],
  [["\ud83d", "x"], "\ufffdx"],
  [["\ud83d", "\ud83d\ude00"], "\ufffd😀"],
])("half a character without its other half is replaced consistently: %j", async (...[chunks, text]) => {
  stage.upstream.script("a", { chunks });
  await expectOutput(text);
});

test("half a character at the end of a step is not joined to the next step's", async () => {
  stage.upstream.script("a", (_request, call) =>
    call === 0
      ? { chunks: ["a\ud83d"], toolCalls: [{ name: "time__now", arguments: {} }] }
      : { chunks: ["\ude00b"] },
  );
  const id = await dispatch(stage.gateway, { agent: "plain", tools: ["time.now"] });
  const events = await allEvents(await openEvents(stage.gateway, id));
  expect(textOf(events)).toBe("a\ufffd\ufffdb");
  expect((await ended(stage.gateway, id)).output).toBe("\ufffdb");
});

test("any text, cut into deltas anywhere, arrives whole", async () => {
  const cuts = fc.array(fc.nat(40), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary", minLength: 1, maxLength: 40 }), cuts, async (text, at) => {
      const edges = [...new Set([0, ...at.filter((cut) => cut < text.length), text.length])].sort(
        (a, b) => a - b,
      );
      const chunks = edges.slice(1).map((end, index) => text.slice(edges[index], end));
      expect(chunks.join("")).toBe(text);
      stage.upstream.script("a", { chunks });
      await expectOutput(text);
    }),
    { numRuns: 60 },
  );
}, 30_000);

test("any text, its bytes cut anywhere on the wire, arrives whole", async () => {
  const cuts = fc.array(fc.nat(2_000), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }), cuts, async (text, at) => {
      // Not escaped, so the cuts also fall inside characters of several bytes.
      const bytes = new TextEncoder().encode(chat(text) + FINISH);
      const edges = [...new Set([0, ...at.filter((cut) => cut < bytes.length), bytes.length])].sort(
        (a, b) => a - b,
      );
      const rawBytes = edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
      stage.upstream.script("a", { rawBytes, delayMs: 1 });
      await expectOutput(text);
    }),
    { numRuns: 40 },
  );
}, 30_000);

test("an emoji cut into its four bytes arrives whole", async () => {
  const bytes = new TextEncoder().encode(chat("👩‍🚀") + FINISH);
  stage.upstream.script("a", { rawBytes: Array.from(bytes, (byte) => Uint8Array.of(byte)), delayMs: 1 });
  await expectOutput("👩‍🚀");
});

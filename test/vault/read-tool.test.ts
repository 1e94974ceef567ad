/** `vault.read` returns the text of exactly the range that it reports: across pages, through emoji, past the end. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PAGE_LENGTH } from "../../src/vault/rows/pages.ts";
import { write } from "../support/vault.ts";
import { run, type Stage, startStage } from "../tasks/support.ts";

/** The most characters that the tool returns, according to its description. */
const MOST = 20_000;
const EMOJI = "😀";

let stage: Stage;
let id: string;
/** A little over three pages, with an emoji across each page boundary. */
let text: string;

beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("reader");
  let made = "";
  for (let page = 1; page <= 3; page++)
    made = `${made.padEnd(page * PAGE_LENGTH - 1, `page${page} `)}${EMOJI}`;
  id = (await write(stage.gateway, { title: "Pages", text: `${made}the end` })).id;
  text = (await stage.gateway.call("GET", `/v1/vault/documents/${id}`)).body.text;
  expect(text).toBe(`${made}the end`);
});
afterAll(() => stage.stop());

interface Part {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly next_start: number | null;
}

/** Runs a task whose model calls the tool, and returns the tool's answer. */
async function read(args: object): Promise<Part> {
  const toolCalls = [{ name: "vault__read", arguments: { document_id: id, ...args } }];
  stage.upstream.script("a", (_request, index) => (index === 0 ? { toolCalls } : { chunks: ["Done."] }));
  const task = await run(stage.gateway, { agent: "reader", tools: ["vault.read"] });
  expect(task.tools_called).toMatchObject([{ tool: "vault.read", status: "succeeded" }]);
  const message = stage.upstream.requests.at(-1)?.body.messages.find(({ role }) => role === "tool");
  return JSON.parse(String(message?.content));
}

/** The text's length: three pages, one more code unit and `the end`. */
const LENGTH = 3 * PAGE_LENGTH + 1 + "the end".length;
const EDGE = PAGE_LENGTH;

describe("start, end, text and next_start agree", () => {
  test.each([
    ["the whole text, up to the limit", {}, 0, MOST],
    ["from the middle on", { start: 5_000 }, 5_000, LENGTH],
    ["up to an end", { end: 17 }, 0, 17],
    ["one character", { start: 8_000, end: 8_001 }, 8_000, 8_001],
    ["nothing", { start: 5, end: 5 }, 5, 5],
    ["an end before the start", { start: 100, end: 50 }, 100, 100],
    ["an end at the beginning", { start: 100, end: 0 }, 100, 100],
    ["a start at the end", { start: LENGTH }, LENGTH, LENGTH],
    ["a start past the end", { start: LENGTH + 1 }, LENGTH, LENGTH],
    ["both far past the end", { start: 2_000_000, end: 3_000_000 }, LENGTH, LENGTH],
    ["a start past the end, and an end before it", { start: 2_000_000, end: 3 }, LENGTH, LENGTH],
    ["an end past the end", { start: LENGTH - 3, end: 2_000_000 }, LENGTH - 3, LENGTH],
    ["more than allowed", { start: 10, end: 2_000_000 }, 10, 10 + MOST],
    ["a page", { start: EDGE, end: 2 * EDGE }, EDGE, 2 * EDGE],
    ["all pages except their outer edges", { start: EDGE - 2, end: 3 * EDGE + 2 }, EDGE - 2, 3 * EDGE + 2],
    ["an emoji across a boundary", { start: EDGE - 1, end: EDGE + 1 }, EDGE - 1, EDGE + 1],
    ["its first half", { start: EDGE - 1, end: EDGE }, EDGE - 1, EDGE],
    ["its second half", { start: EDGE, end: EDGE + 1 }, EDGE, EDGE + 1],
    ["from its second half on", { start: 2 * EDGE, end: 2 * EDGE + 9 }, 2 * EDGE, 2 * EDGE + 9],
    ["up to its first half", { start: 2 * EDGE - 9, end: 2 * EDGE }, 2 * EDGE - 9, 2 * EDGE],
  ])("for %s", async (_, args, start, end) => {
    // 5,000 and 20,000 exceed the remaining length.
    const to = Math.min(end, start + MOST);
    const part = await read(args);
    expect(part).toMatchObject({ start, end: to, next_start: to < LENGTH ? to : null });
    expect(part.text.length).toBe(part.end - part.start);
    expect(part.text).toBe(text.slice(start, to).toWellFormed());
  });
});

test("following next_start reads the whole text, each character once", async () => {
  let whole = "";
  for (let start: number | null = 0; start !== null; ) {
    const part = await read({ start });
    expect(part.start).toBe(start);
    whole += part.text;
    start = part.next_start;
  }
  expect(whole).toBe(text);
});

test("even if an emoji crosses the limit of one read", async () => {
  const made = `${"x".repeat(MOST - 1)}${EMOJI}end`;
  const other = (await write(stage.gateway, { title: "Emoji", text: made })).id;
  const first = await read({ document_id: other });
  const rest = await read({ document_id: other, start: first.next_start });
  expect(first.text + rest.text).toBe(made);
});

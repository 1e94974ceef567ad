import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { EventMeter } from "../../src/base/event-stream.ts";
import { MAX_MEMBERS } from "../../src/base/json-limits.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const lists = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const HALF = 60;

/** The meter's result for a text that arrives in parts of `size` bytes. */
function measure(text: string, size = text.length): { readonly bytes: number; readonly isWithin: boolean } {
  const meter = new EventMeter();
  const bytes = encode(text);
  let most = 0;
  for (let at = 0; at < bytes.length; at += size) {
    const part = meter.add(bytes.subarray(at, at + size));
    most = Math.max(most, part.bytes);
    if (part.excess) return { bytes: most, isWithin: false };
  }
  return { bytes: most, isWithin: true };
}

describe("the members of JSON in a stream's events", () => {
  const items = (count: number): string => "0,".repeat(count);
  test.each([
    ["past the limit", `data: [${items(MAX_MEMBERS)}0]\n\n`, false],
    [
      "over several lines of one event",
      `data: [${items(MAX_MEMBERS / 2)}\ndata: ${items(MAX_MEMBERS / 2)}0]\n\n`,
      false,
    ],
    ["each event by itself", `data: [${items(MAX_MEMBERS - 1)}0]\n\n`.repeat(3), true],
    ["of other fields are not counted", `: ${items(MAX_MEMBERS * 2)}\n\n`, true],
  ])("%s", (_name, text, isWithin) => {
    for (const size of [4_096, text.length]) expect(measure(text, size).isWithin).toBe(isWithin);
  });
});

describe("the nesting of JSON in a stream's events", () => {
  test.each([
    ["within the limit", `data: ${lists(100)}\n\n`, true],
    ["past the limit", `data: ${lists(101)}\n\n`, false],
    ["without a blank before it", `data:${lists(101)}\n\n`, false],
    ["over several lines of one event", `data: ${"[".repeat(HALF)}\ndata: ${"[".repeat(HALF)}\n\n`, false],
    ["each event by itself", `data: ${"[".repeat(HALF)}\n\ndata: ${"[".repeat(HALF)}\n\n`, true],
    ["after lines that end in CR", `: x\rdata: ${lists(101)}\r\r`, false],
    ["after lines that end in CRLF", `event: x\r\ndata: ${lists(101)}\r\n\r\n`, false],
    ["after a quote in a comment", `: it's "\ndata: ${lists(101)}\n\n`, false],
    ["after a quote in an id", `id: "\ndata: ${lists(101)}\n\n`, false],
    ["after a text that is cut by its line", `data: {"a":"\ndata: ${lists(101)}\n\n`, false],
    [
      "if another field closes brackets",
      `data: ${"[".repeat(HALF)}\nid: ${"]".repeat(HALF)}\ndata: ${"[".repeat(HALF)}\n\n`,
      false,
    ],
    [
      "if a field that resembles data closes brackets",
      `data: ${"[".repeat(HALF)}\ndatax: ${"]".repeat(HALF)}\ndata: ${"[".repeat(HALF)}\n\n`,
      false,
    ],
    ["of other fields is not counted", `: ${"[".repeat(200)}\nid: ${"{".repeat(200)}\n\n`, true],
    ["after one byte order mark", `\uFEFFdata: ${lists(101)}\n\n`, false],
    ["after two byte order marks", `\uFEFF\uFEFFdata: ${lists(101)}\n\n`, false],
    ["after a byte order mark and a quote", `\uFEFF\uFEFFdata: "\ndata: ${lists(101)}\n\n`, false],
    ["in a text that is JSON itself", `data: ${JSON.stringify({ text: lists(500) })}\n\n`, true],
    ["of an endless event", `data: ${"[".repeat(101)}`, false],
  ])("%s", (_name, text, isWithin) => {
    for (const size of [1, 2, 7, text.length]) expect(measure(text, size).isWithin).toBe(isWithin);
  });

  test("of any JSON, however the bytes are cut and whatever else the stream contains", () => {
    const other = fc.constantFrom(': "', "id: ]]", "event: {{", "retry: 1", "data", "");
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.array(other, { maxLength: 4 }),
        fc.constantFrom("\n", "\r", "\r\n"),
        fc.integer({ min: 1, max: 300 }),
        (levels, others, end, size) => {
          const text = [...others, `data: ${lists(levels)}`, "", "data: {}", "", ""].join(end);
          expect(measure(text, size).isWithin).toBe(levels <= 100);
        },
      ),
    );
  });
});

test("an event's length is its number of bytes, however they are cut", () => {
  const event = fc.array(fc.constantFrom("data: 12345", "id: 7", ": comment", "data:"), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(event, { minLength: 1 }), fc.integer({ min: 1, max: 50 }), (events, size) => {
      const texts = events.map((lines) => `${lines.join("\n")}\n\n`);
      const longest = Math.max(...texts.map((text) => text.length));
      expect(measure(texts.join(""), size).bytes).toBe(longest);
    }),
  );
});

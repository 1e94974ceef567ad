/** Events of one form are read without parsing them, with the same result as if they were parsed. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { parsedOrNothing } from "../../src/dialects/json.ts";
import { EventForm, textMember } from "../../src/dialects/pass/event-form.ts";
import { readEvents } from "../../src/dialects/pass/read-events.ts";

/** The members in which most events differ, as in the streams of the three dialects. */
function findVarying(value: unknown) {
  const isNumbered = typeof value === "object" && value !== null && "number" in value;
  const holder = value as Record<string, unknown>;
  return [
    ...textMember(holder?.delta, ["text", "thought"]),
    ...(isNumbered && Number.isSafeInteger(holder.number) ? [{ holder, name: "number" }] : []),
    ...textMember(value, ["padding"]),
  ];
}

/** What `readEvents` passes on for each event, and what parsing each event gives. */
async function bothReadings(events: readonly string[]) {
  const bytes = Buffer.from(events.map((data) => `data: ${data}\n\n`).join(""));
  const read: unknown[] = [];
  await readEvents(
    bytes,
    () => undefined,
    findVarying,
    (_, value) => read.push(structuredClone(value)),
  );
  return { read, parsed: events.map(parsedOrNothing) };
}

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom(
    "",
    '"',
    "\\",
    'x"text":"y',
    '","text":"z',
    "\u2028",
    "gatehouse-probe-0",
    "é",
    "\ud83d\ude00",
  ),
);
const number = fc.oneof(
  fc.nat(),
  fc.constantFrom(-1, 0, 1.5, 1e21, 999_999_999_999_999, 2 ** 53, 734_502_819_300_000),
);
/** A provider's JSON writer: with or without spaces, and with or without escapes of non-ASCII letters. */
const writer = fc.record({ spaces: fc.boolean(), escapes: fc.boolean() });

function write(value: unknown, { spaces, escapes }: { spaces: boolean; escapes: boolean }): string {
  const json = spaces ? JSON.stringify(value, null, 1).replace(/\n */g, "") : JSON.stringify(value);
  if (!escapes) return json;
  return json.replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const event = fc.record(
  {
    id: fc.constantFrom("a", "text"),
    number,
    delta: fc.record({ text, thought: text, kind: fc.constantFrom("x", "text") }, { requiredKeys: [] }),
    padding: text,
    usage: fc.constantFrom(null, { number: 1 }),
  },
  { requiredKeys: ["delta"] },
);

test("every event has the value that parsing it gives, whatever varies", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 12 }), event, writer, async (others, base, how) => {
      // Most events of a stream are alike.
      const alike = others.map((other, index) => (index % 3 === 2 ? other : { ...base, ...pick(other) }));
      const { read, parsed } = await bothReadings(alike.map((value) => write(value, how)));
      expect(read).toEqual(parsed);
    }),
    { numRuns: 2_000 },
  );
});

function pick({ delta, padding }: { delta: object; padding?: string }): object {
  return padding === undefined ? { delta } : { delta, padding };
}

const FIRST = '{"delta":{"text":"one"},"number":1}';

test.each([
  ["a text with a raw control character", '{"delta":{"text":"a\tb"},"number":2}'],
  ["a text that does not end", '{"delta":{"text":"a},"number":2}'],
  ["an invalid escape", '{"delta":{"text":"\\x"},"number":2}'],
  ["more after the end", '{"delta":{"text":"a"},"number":2}}'],
  ["less before the end", '{"delta":{"text":"a"},"number":2'],
  ["a number with a leading zero", '{"delta":{"text":"a"},"number":02}'],
  ["a number in place of the text", '{"delta":{"text":5},"number":2}'],
  ["a text in place of the number", '{"delta":{"text":"a"},"number":"2"}'],
  ["a number that loses digits", '{"delta":{"text":"a"},"number":12345678901234567890}'],
  ["an exponent", '{"delta":{"text":"a"},"number":1e3}'],
])("%s is not read as an event of the form", async (_, other) => {
  const form = EventForm.of(FIRST, JSON.parse(FIRST), findVarying);
  expect(form?.read('{"delta":{"text":"two"},"number":22}')).toEqual({ delta: { text: "two" }, number: 22 });
  expect(form?.read(other)).toBeUndefined();
  const { read, parsed } = await bothReadings([FIRST, other, FIRST]);
  expect(read).toEqual(parsed);
});

test.each([
  ["nothing varies", "{}"],
  ["the same member is written twice", '{"delta":{"text":"a","text":"b"},"delta":{"text":"a"}}'],
  ["the text could be another one's", '{"id":{"text":"a"},"delta":{"text":"a"}}'],
])("there is no form if %s", (_, json) => {
  expect(EventForm.of(json, JSON.parse(json), findVarying)).toBeNull();
});

test("numbers that lose digits are found in events of one form too", async () => {
  const json = '{"delta":{"text":"a"},"id":12345678901234567890}';
  const bytes = Buffer.from(`data: ${json}\n\n`.repeat(3));
  expect(
    await readEvents(
      bytes,
      () => undefined,
      findVarying,
      () => {},
    ),
  ).toBe(false);
});

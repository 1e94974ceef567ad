import { expect, test } from "bun:test";
import fc from "fast-check";
import { EventSplitter, eventsIn, readEvent, startOfEvent } from "../../src/dialects/pass/events.ts";

const event = fc
  .tuple(
    fc.array(fc.stringMatching(/^[ -~é]{0,20}$/), { minLength: 1, maxLength: 3 }),
    fc.constantFrom("\n", "\r\n", "\r"),
  )
  .map(([lines, newline]) => ({
    text: `${lines.map((line) => `data: ${line}`).join(newline)}${newline}${newline}`,
    data: lines.join("\n"),
  }));

test("events come out as they came in, wherever the stream is split", () => {
  fc.assert(
    fc.property(fc.array(event), fc.array(fc.nat({ max: 400 })), fc.string(), (events, cuts, rest) => {
      const unfinished = `data: ${rest.replaceAll(/[\r\n]/g, "")}`;
      const bytes = Buffer.from(events.map(({ text }) => text).join("") + unfinished);
      const splitter = new EventSplitter();
      const places = [...new Set([0, ...cuts.filter((cut) => cut < bytes.length), bytes.length])].sort(
        (a, b) => a - b,
      );
      const found: string[] = [];
      for (const [index, from] of places.entries()) {
        const whole = splitter.add(bytes.subarray(from, places[index + 1] ?? from));
        for (const each of eventsIn(whole)) found.push(each.toString());
      }
      expect(found.join("") + splitter.end().toString()).toBe(bytes.toString());
      // A stream that is cut between CR and LF has the LF at the start of the next event.
      expect(found.map((each) => readEvent(Buffer.from(each)).data)).toEqual(events.map(({ data }) => data));
    }),
  );
});

test("the start of an event is found from any word in it", () => {
  fc.assert(
    fc.property(fc.array(event), (events) => {
      const bytes = Buffer.from(events.map(({ text }) => text).join(""));
      let start = 0;
      for (const each of eventsIn(bytes)) {
        for (const [at, byte] of each.entries()) {
          if (byte > 0x20) expect(startOfEvent(bytes, start + at)).toBe(start);
        }
        start += each.length;
      }
    }),
  );
});

test("an event that never ends costs no more than its length", () => {
  const splitter = new EventSplitter();
  const part = Buffer.alloc(64, "x");
  let copied = 0;
  const concat = Buffer.concat;
  Buffer.concat = (parts, length) => {
    const all = concat(parts, length);
    copied += all.length;
    return all;
  };
  try {
    for (let sent = 0; sent < 100_000; sent++) splitter.add(part);
  } finally {
    Buffer.concat = concat;
  }
  expect(copied).toBeLessThan(100_000 * 64 * 4);
});

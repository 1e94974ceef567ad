import { expect, test } from "bun:test";
import fc from "fast-check";
import { LineReader } from "../../../src/mcp/bridge/lines.ts";

test("a line that is too long is skipped and reported, however its pieces are cut", () => {
  const reader = new LineReader(4);
  const lines = ["ab\ncd", "efg", "h\n1234\n12345\n\nx"].flatMap((text) => reader.push(Buffer.from(text)));
  expect([...lines, reader.rest()]).toEqual(["ab", null, "1234", null, "", "x"]);
  expect(reader.rest()).toBe("");
});

test("lines are returned unchanged, however the bytes are cut", () => {
  const line = fc.string({ unit: "grapheme", maxLength: 20 }).map((text) => text.replaceAll("\n", ""));
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((each) => `${each}\n`).join(""));
      const reader = new LineReader(1_000);
      const read: (string | null)[] = [];
      for (let from = 0, turn = 0; from < bytes.length; turn++) {
        const to = from + (cuts[turn % cuts.length] ?? 1);
        read.push(...reader.push(bytes.subarray(from, to)));
        from = to;
      }
      expect(read).toEqual(lines);
    }),
  );
});

/** JSON written part by part equals the same JSON written at once. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { silentLog } from "../../src/base/log.ts";
import { jsonParts, textParts } from "../../src/http/answer/json-parts.ts";
import { LongAnswers } from "../../src/http/answer/long-answers.ts";
import { FakeClock } from "../support/clock.ts";

const long = (unit: string) => unit.repeat(200_000);
const joined = (value: unknown) => [...jsonParts(value).parts()].join("");

test.each([
  ["a long text", long("x")],
  ["pairs at the ends of parts", [long("\u{1f600}"), `x${long("\u{1f600}")}`]],
  ["half of a pair", `${"x".repeat(65_535)}\ud83d${long("y")}`],
  ["escapes", { "\n": long('"\u0001\\') }],
  ["undefined", { a: undefined, b: [undefined, long("z")], c: {} }],
  ["a first member that is omitted", { a: undefined, b: long("x"), c: undefined }],
  ["a list of small ones", Array.from({ length: 50_000 }, (_, id) => ({ id, at: null, is: true }))],
  ["depth", Array.from({ length: 90 }).reduce((inner) => ({ inner, next: [1] }), long("x"))],
  ["a value that serialises itself", { at: new Date(0), data: [long("x")], n: Number.NaN }],
])("of %s", (_, value) => {
  expect(joined(value)).toBe(JSON.stringify(value));
});

test("of any value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(3), (value, at) => {
      const list = [value, long("x"), value].slice(at % 2);
      expect(joined(list)).toBe(JSON.stringify(list));
    }),
    { numRuns: 50 },
  );
});

test("no part ends within a surrogate pair or is much longer than 64 Ki characters", () => {
  for (const { parts } of [textParts(`x${long("\u{1f600}")}`), jsonParts([`x${long("\u{1f600}")}`])]) {
    for (const part of parts()) {
      expect(part.isWellFormed()).toBe(true);
      expect(part.length).toBeLessThanOrEqual(65_536);
    }
  }
});

test("each value of a long answer is read once to measure it and once to write it", () => {
  let read = 0;
  const counted = (value: object) =>
    new Proxy(value, {
      ownKeys(target) {
        read += 1;
        return Reflect.ownKeys(target);
      },
    });
  const item = counted({ text: long("x"), inner: counted({ text: long("y") }) });
  const answers = new LongAnswers({ clock: new FakeClock(), log: silentLog });
  const answered = { workspaceId: 1, requestId: "req_1", request: new Request("http://127.0.0.1/") };
  expect(answers.reply(answered, { status: 200, body: { data: [item] } })).toHaveProperty("stream");
  expect(read).toBe(2);
  expect(joined({ data: [item] })).toBe(JSON.stringify({ data: [item] }));
  // Measured and written in parts, and written at once for comparison.
  expect(read).toBe(2 + 4 + 2);
});

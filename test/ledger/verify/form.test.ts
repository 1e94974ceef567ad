/** Whether bytes are exactly an entry as this program writes it. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Detail, type EntryDraft, encodeEntry } from "../../../src/ledger/entry.ts";
import { Bits } from "../../../src/ledger/verify/bits.ts";
import { formOf } from "../../../src/ledger/verify/form.ts";
import { draft } from "../support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

const SEALED = { seq: 2, prev: "ab".repeat(32), ts: "2026-01-01T00:00:00.000Z" };
const GOOD = encodeEntry(draft({ detail: { a: 1, b: { c: "x" } }, agent: "helper" }), SEALED);
const problemOf = (text: string | Uint8Array) =>
  formOf(typeof text === "string" ? new TextEncoder().encode(text) : text).problem;

test("deep nesting is reported without being read", () => {
  for (const depth of [5_000, 1_000_000]) {
    const nested = `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    expect(formOf(new TextEncoder().encode(nested))).toEqual({
      fields: null,
      problem: "it is nested too deeply",
    });
  }
  const brackets = encodeEntry(draft({ actor: `\\"${"[{".repeat(5_000)}` }), SEALED);
  expect(problemOf(brackets)).toBeNull();
});

const anyText = fc.string({ unit: "binary", maxLength: 12 });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const anyDetail: fc.Arbitrary<Detail> = fc.letrec<{ detail: Detail }>((tie) => ({
  detail: fc.dictionary(
    fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/),
    fc.oneof({ depthSize: "small" }, anyText, fc.maxSafeInteger(), tie("detail")),
    { maxKeys: 5, noNullPrototype: true },
  ),
})).detail;
const anyDraft: fc.Arbitrary<EntryDraft> = fc.record({
  phase: fc.constantFrom("single", "intent", "outcome"),
  action: fc.constant("task.dispatch"),
  outcome: fc.constantFrom("allowed", "denied", "pending", "succeeded", "failed", "cancelled"),
  channel: fc.constantFrom("rest", "mcp", "system"),
  actor: anyText,
  code: maybe(anyText),
  ref: maybe(fc.maxSafeInteger()),
  requestId: maybe(anyText),
  agent: maybe(anyText),
  tier: maybe(fc.maxSafeInteger()),
  model: maybe(anyText),
  task: maybe(anyText),
  tool: maybe(anyText),
  credits: maybe(fc.maxSafeInteger()),
  oversight: maybe(fc.record({ person: anyText, decision: anyText, target_seq: fc.maxSafeInteger() })),
  detail: maybe(anyDetail),
});

test("every entry that can be encoded has this form", () => {
  const anySealed = fc.record({
    inputHash: maybe(fc.constant("cd".repeat(32))),
    outputHash: maybe(fc.constant("ef".repeat(32))),
  });
  fc.assert(
    fc.property(anyDraft, anySealed, (from, hashes) => {
      const text = encodeEntry(from, { ...SEALED, ...hashes });
      expect({ text, problem: problemOf(text) }).toEqual({ text, problem: null });
    }),
    { numRuns: 1_000 },
  );
});

describe("bytes not in this form are reported:", () => {
  test.each([
    ["nothing", "", "not JSON"],
    ["not JSON", "hello", "not JSON"],
    ["no object", "[]", "not a JSON object"],
    ["null", "null", "not a JSON object"],
    ["bytes that are no UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "not JSON"],
    ["a byte order mark", `\ufeff${GOOD}`, "not JSON"],
    ["endless brackets", "[".repeat(500_000), "nested too deeply"],
    ["a space", GOOD.replace(":", ": "), "not canonical"],
    ["a line's end", `${GOOD}\n`, "not canonical"],
    ["an invalid escape", GOOD.replace("helper", "\\u0068elper"), "not canonical"],
    ["half a surrogate pair", GOOD.replace("helper", "\\ud800"), "agent"],
    ["a field twice", GOOD.replace('"agent":"helper"', '"agent":"x","agent":"helper"'), "not canonical"],
    ["a number with a fraction", GOOD.replace('"a":1', '"a":1.5'), "detail"],
    ["a number that is too large", GOOD.replace('"a":1', '"a":9007199254740993'), "not canonical"],
    ["a list", GOOD.replace('"a":1', '"a":[]'), "detail"],
    ["null in it", GOOD.replace('"a":1', '"a":null'), "detail"],
    ["keys out of order", GOOD.replace('"a":1,"b":{"c":"x"}', '"b":{"c":"x"},"a":1'), "detail"],
    ["a key of another form", GOOD.replace('"a":1', '"A":1'), "detail"],
    [
      "fields out of order",
      GOOD.replace('"agent":"helper","channel":"system"', '"channel":"system","agent":"helper"'),
      "agent where outcome belongs",
    ],
    ["a field that is unknown", GOOD.replace('"agent"', '"agenda"'), "agenda"],
    ["a prototype", GOOD.replace('"agent"', '"__proto__"'), "__proto__"],
    ["a field that is missing", GOOD.replace('"outcome":"succeeded",', ""), "outcome"],
    ["a last field that is missing", GOOD.replace(/,"ts":"[^"]*"/, ""), "ts"],
    ["an invalid phase", GOOD.replace("single", "double"), "phase"],
    ["a number as text", GOOD.replace('"seq":2', '"seq":"2"'), "seq"],
    ["a hash in capitals", GOOD.replace(/ab/g, "AB"), "prev"],
    ["a time in another form", GOOD.replace(".000Z", "Z"), "ts"],
    ["an invalid time", GOOD.replace("2026-01-01", "2026-13-01"), "ts"],
  ])("%s", (_, text, problem) => {
    expect(problemOf(text)).toContain(problem);
  });
});

test("a set of bits has the same members as a set of numbers", () => {
  const command = fc.record({ isAdded: fc.boolean(), bit: fc.nat({ max: 200_000 }) });
  fc.assert(
    fc.property(
      fc.array(command, { maxLength: 200 }),
      fc.nat({ max: 200_000 }),
      fc.nat({ max: 200_000 }),
      (commands, a, b) => {
        const [bits, numbers] = [new Bits(), new Set<number>()];
        for (const { isAdded, bit } of commands) {
          if (isAdded) bits.add(bit);
          else bits.delete(bit);
          if (isAdded) numbers.add(bit);
          else numbers.delete(bit);
        }
        const within = [...numbers].filter((bit) => bit >= a && bit < b).sort((x, y) => x - y);
        expect(bits.size).toBe(numbers.size);
        expect([...bits.within(a, b)]).toEqual(within);
        for (const { bit } of commands) expect(bits.has(bit)).toBe(numbers.has(bit));
      },
    ),
  );
});

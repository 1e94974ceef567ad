import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  type Detail,
  type EntryDraft,
  type EntryFields,
  encodeEntry,
  leafHash,
} from "../../src/ledger/entry.ts";
import { draft } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

const SEALED: EntryFields = { seq: 1, prev: "0".repeat(64), ts: "2026-01-01T00:00:00.000Z" };

/**
 * RFC 8785, implemented a second time for objects of strings and integers: keys in order of their UTF-16 units,
 * absent values omitted.
 */
function canonical(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.toWellFormed());
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const keys = Object.keys(value).filter((key) => Reflect.get(value, key) !== undefined);
  const members = keys
    .sort((a, b) => (a < b ? -1 : 1))
    .map((key) => `${JSON.stringify(key)}:${canonical(Reflect.get(value, key))}`);
  return `{${members.join(",")}}`;
}

/** The entry as an object, under the contract's names. */
function named(from: EntryDraft, sealed: EntryFields): object {
  const { requestId, input: _, output: __, ...rest } = from;
  const { inputHash, outputHash, ...place } = sealed;
  return { ...rest, ...place, request_id: requestId, input_hash: inputHash, output_hash: outputHash };
}

/** Any UTF-16 units, including halves of surrogate pairs. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd7f0, max: 0xe010 })), {
    maxLength: 12,
  })
  .map((units) => String.fromCharCode(...units));
const anyInteger = fc.maxSafeInteger();
const anyKey = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const anyDetail: fc.Arbitrary<Detail> = fc.letrec<{ detail: Detail }>((tie) => ({
  detail: fc.dictionary(
    anyKey,
    fc.oneof({ depthSize: "small" }, anyText, anyInteger, fc.constant(undefined), tie("detail")),
    {
      maxKeys: 5,
      noNullPrototype: true,
    },
  ),
})).detail;
const anyDraft: fc.Arbitrary<EntryDraft> = fc.record({
  phase: fc.constantFrom("single", "intent", "outcome"),
  action: fc.constant("task.dispatch"),
  outcome: fc.constantFrom("allowed", "denied"),
  channel: fc.constantFrom("rest", "mcp", "system"),
  actor: anyText,
  code: maybe(anyText),
  ref: maybe(anyInteger),
  requestId: maybe(anyText),
  agent: maybe(anyText),
  tier: maybe(anyInteger),
  model: maybe(anyText),
  task: maybe(anyText),
  tool: maybe(anyText),
  credits: maybe(anyInteger),
  oversight: maybe(
    fc.record({ person: anyText, decision: anyText, target_seq: anyInteger, reason_hash: anyText }),
  ),
  detail: maybe(anyDetail),
});
const anySealed: fc.Arbitrary<EntryFields> = fc.record({
  seq: fc.integer({ min: 1 }),
  prev: fc.constant("ab".repeat(32)),
  ts: fc.constant(SEALED.ts),
  inputHash: maybe(fc.constant("cd".repeat(32))),
  outputHash: maybe(fc.constant("ef".repeat(32))),
});

describe("an entry is refused", () => {
  test.each([
    ["a fraction as credits", { credits: 0.5 }],
    ["a non-number as credits", { credits: Number.NaN }],
    ["a tier beyond exact integers", { tier: 2 ** 53 }],
    ["infinity as the intent", { ref: Number.POSITIVE_INFINITY }],
    ["a fraction in the detail", { detail: { a: 1.5 } }],
    ["a fraction deep in the detail", { detail: { a: { b: { c: 1e300 } } } }],
    ["a key that JavaScript moves to the front", { detail: { b: 1, 10: 1, 9: 1 } }],
    [
      "a key that JavaScript treats as the prototype",
      { detail: JSON.parse('{"__proto__":{"a":1}}') as Detail },
    ],
    ["a key in another form", { detail: { durationMs: 1 } }],
  ])("with %s", (_, more) => {
    expect(() => encodeEntry(draft(more), SEALED)).toThrow(TypeError);
  });
});

describe("an entry's bytes", () => {
  test("are canonical JSON, whatever the entry contains", () => {
    fc.assert(
      fc.property(anyDraft, anySealed, (from, sealed) => {
        expect(encodeEntry(from, sealed)).toBe(canonical(named(from, sealed)));
      }),
      { numRuns: 1_000 },
    );
  });

  test("are UTF-8 without loss, and can be read back as written", () => {
    fc.assert(
      fc.property(anyDraft, anySealed, (from, sealed) => {
        const bytes = encodeEntry(from, sealed);
        expect(Buffer.from(bytes, "utf8").toString("utf8")).toBe(bytes);
        expect(canonical(JSON.parse(bytes))).toBe(bytes);
      }),
    );
  });

  test("omit absent fields", () => {
    expect(encodeEntry(draft({ detail: { count: undefined } }), SEALED)).toBe(
      `{"action":"test.note","actor":"system","channel":"system","detail":{},"outcome":"succeeded","phase":"single","prev":"${SEALED.prev}","seq":1,"ts":"${SEALED.ts}"}`,
    );
  });

  test("contain half a surrogate pair as the replacement character, at every place", () => {
    const bytes = encodeEntry(draft({ agent: "a\ud800", tool: "\udc00b", detail: { x: "\ud83d" } }), SEALED);
    expect(bytes).not.toMatch(/\\ud/i);
    expect(JSON.parse(bytes)).toMatchObject({ agent: "a\ufffd", tool: "\ufffdb", detail: { x: "\ufffd" } });
  });

  test("contain only the beginning of a long text, because entries are never erased", () => {
    const long = "x".repeat(1_000_000);
    const bytes = encodeEntry(
      draft({ agent: long, tool: long, detail: { x: long, y: { z: long } } }),
      SEALED,
    );
    expect(bytes.length).toBeLessThan(270_000);
    expect(JSON.parse(bytes).detail.x).toBe(`${long.slice(0, 65_535)}…`);
    const shown = (agent: string) => JSON.parse(encodeEntry(draft({ agent }), SEALED)).agent;
    expect(shown(`${"x".repeat(65_534)}\ud83d\ude00y`).slice(-3)).toBe("x\ufffd…");
    expect(shown(long.slice(0, 65_536)) === long.slice(0, 65_536)).toBe(true);
  });

  test("never contain the texts themselves", () => {
    const bytes = encodeEntry({ ...draft(), input: "the prompt", output: "the answer" }, SEALED);
    expect(bytes).not.toContain("the prompt");
    expect(bytes).not.toContain("the answer");
  });
});

test("a leaf is SHA-256 over a zero byte and the bytes (RFC 9162, 2.1.1)", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const expected = createHash("sha256").update(
        Buffer.concat([Buffer.from([0]), Buffer.from(text, "utf8")]),
      );
      expect(leafHash(text).toString("hex")).toBe(expected.digest("hex"));
    }),
  );
  // The leaf hash of an empty entry, from RFC 6962's test vectors.
  expect(leafHash("").toString("hex")).toBe(
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  );
});

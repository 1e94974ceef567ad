import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { optionalTimestamp, timestamp } from "../../src/base/clock.ts";
import { parseDuration } from "../../src/base/duration.ts";
import { canonicalJson } from "../../src/base/json.ts";
import { createLog } from "../../src/base/log.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

describe("a duration", () => {
  test.each([
    "",
    "10",
    "m",
    "1.5h",
    "-1d",
    "+1d",
    "01d",
    " 1d",
    "1d ",
    "1d\n",
    "1D",
    "1y",
    "1h30m",
    "1e3s",
    "1000000000s",
    "١d",
  ])("refuses %p", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test.each([
    ["0s", 0],
    ["1s", 1_000],
    ["10m", 600_000],
    ["12h", 43_200_000],
    ["90d", 7_776_000_000],
    ["2w", 1_209_600_000],
    ["999999999s", 999_999_999_000],
  ])("%s is %d ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});

describe("a time", () => {
  test("is written in UTC with milliseconds", () => {
    expect(timestamp(0)).toBe("1970-01-01T00:00:00.000Z");
    expect(optionalTimestamp(null)).toBeNull();
    expect(optionalTimestamp(1)).toBe("1970-01-01T00:00:00.001Z");
  });
});

describe("canonical JSON", () => {
  test.each([
    [
      "keys in order, nested too",
      { b: { d: 1, c: [2, { f: 3, e: 4 }] }, a: null },
      '{"a":null,"b":{"c":[2,{"e":4,"f":3}],"d":1}}',
    ],
    ["a key that is __proto__", JSON.parse('{"__proto__":{"b":1,"a":2}}'), '{"__proto__":{"a":2,"b":1}}'],
    ["undefined values are left out", { b: undefined, a: 1 }, '{"a":1}'],
    ["arrays keep their order", [3, 1, 2], "[3,1,2]"],
  ])("%s", (_, value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test("is the same text for equal values, whatever the order of keys, and differs for others", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (value, other) => {
        expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
        const same = Bun.deepEquals(
          JSON.parse(JSON.stringify(value)),
          JSON.parse(JSON.stringify(other)),
          true,
        );
        expect(canonicalJson(value) === canonicalJson(other)).toBe(same);
      }),
    );
  });
});

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, shuffled(item)]),
  );
}

describe("the log", () => {
  const SECRET = `gth_${"Ab1".repeat(16)}Z`;
  const lines: string[] = [];
  const log = createLog("info", { now: () => 0 }, (line) => lines.push(line));

  test.each([
    ["its message", () => log.info(`token ${SECRET}`)],
    ["a field", () => log.warn("m", { token: SECRET })],
    ["a field's name", () => log.warn("m", { [SECRET]: 1 })],
    ["something nested", () => log.warn("m", { headers: { authorization: [`Bearer ${SECRET}`] } })],
    ["an error's message and stack", () => log.error("m", { error: new Error(SECRET) })],
    ["an error's cause", () => log.error("m", { error: new Error("x", { cause: new Error(SECRET) }) })],
  ])("contains no secret that was in %s", (_, write) => {
    write();
    const line = lines.at(-1) ?? "";
    expect(line).not.toContain(SECRET.slice(4));
    expect(line).toContain("gth_[redacted]");
    expect(() => JSON.parse(line)).not.toThrow();
  });

  test("is one object per line, whatever a text contains", () => {
    log.info("two\nlines", { big: 10n ** 30n, nothing: undefined });
    const line = lines.at(-1) ?? "";
    expect(line.indexOf("\n")).toBe(line.length - 1);
    expect(JSON.parse(line)).toEqual({
      ts: "1970-01-01T00:00:00.000Z",
      level: "info",
      message: "two\nlines",
      big: "1000000000000000000000000000000",
    });
  });

  test("omits entries below the requested level", () => {
    const before = lines.length;
    log.debug("no");
    expect(lines).toHaveLength(before);
  });

  test.each([
    ["is circular", () => circle()],
    [
      "throws when it is read",
      () => ({
        toJSON: () => {
          throw new Error("no");
        },
      }),
    ],
  ])("does not fail on a field that %s", (_, field) => {
    expect(() => log.error("still said", { field: field() })).not.toThrow();
    expect(lines.at(-1)).toContain("still said");
  });
});

function circle(): object {
  const value: { self?: object } = {};
  value.self = value;
  return value;
}

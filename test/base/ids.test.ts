import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createIds, type IdPrefix, isId, systemRandom } from "../../src/base/ids.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

const PREFIXES: readonly IdPrefix[] = ["task", "tok", "doc", "chk", "call", "req"];
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

function idsAt(times: readonly number[]) {
  let call = 0;
  return createIds({ now: () => times[Math.min(call++, times.length - 1)] ?? 0 }, systemRandom);
}

/** The 128 bits of an id, written as a UUID. */
function uuid(id: string): string {
  let value = 0n;
  for (const character of id.split("_")[1] ?? "") value = value * 32n + BigInt(ALPHABET.indexOf(character));
  const hex = value.toString(16).padStart(32, "0");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

describe("an id", () => {
  test.each(PREFIXES)("of %s is a UUIDv7 of its time, in 26 characters of Crockford's base32", (prefix) => {
    const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
    const id = idsAt([now])(prefix);
    expect(id).toMatch(new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`));
    expect(uuid(id)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(uuid(id).replaceAll("-", "").slice(0, 12), 16)).toBe(now);
  });

  test("sorts by time as text, whatever the times", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 2 ** 48 - 1 }), { minLength: 2, maxLength: 50 }),
        (times) => {
          const sorted = times.toSorted((a, b) => a - b);
          const ids = idsAt(sorted);
          const made = sorted.map(() => ids("task"));
          expect(made.toSorted()).toEqual(made);
        },
      ),
    );
  });

  test("never goes back and never repeats, whatever the clock does", () => {
    const near = fc.integer({ min: -20, max: 20 });
    fc.assert(
      fc.property(fc.array(near, { minLength: 1, maxLength: 200 }), (steps) => {
        let now = 1_800_000_000_000;
        const ids = createIds({ now: () => now }, systemRandom);
        const made: string[] = [];
        for (const step of steps) {
          now += step;
          made.push(ids("req"));
        }
        for (const [index, id] of made.entries())
          if (index > 0) expect(id > (made[index - 1] ?? "")).toBe(true);
      }),
    );
  });

  test("keeps its order beyond the end of a millisecond's counter", () => {
    const ids = idsAt([1_800_000_000_000]);
    let last = "";
    for (let index = 0; index < 10_000; index++) {
      const id = ids("call");
      expect(id > last).toBe(true);
      last = id;
    }
    expect(uuid(last)[14]).toBe("7");
  });

  test("with the same time differs in 62 random bits", () => {
    const tails = new Set<string>();
    for (let index = 0; index < 1_000; index++) tails.add(uuid(idsAt([1])("req")).slice(19));
    expect(tails.size).toBe(1_000);
  });
});

describe("isId", () => {
  const id = idsAt([1_800_000_000_000])("task");
  const [, body = ""] = id.split("_");
  test.each([
    ["another prefix", "task", `tok_${body}`],
    ["no prefix", "task", body],
    ["a longer one", "task", `${id}0`],
    ["a shorter one", "task", id.slice(0, -1)],
    ["upper case", "task", `task_${body.toUpperCase()}`],
    ["a letter that Crockford left out", "task", `task_${body.slice(0, 25)}u`],
    ["more than 128 bits", "task", `task_8${body.slice(1)}`],
    ["a line break after it", "task", `task_${body.slice(0, 25)}\n`],
    ["nothing", "task", ""],
  ] as const)("refuses %s", (_, prefix, text) => {
    expect(isId(prefix, text)).toBe(false);
  });

  test("accepts created ids", () => {
    expect(isId("task", id)).toBe(true);
  });
});

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Leases } from "../../src/limits/leases.ts";
import { MinuteTally } from "../../src/limits/tally.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

const MINUTE = 60_000;

describe("a tally", () => {
  test("reports each key once a minute, and how often it was only counted", () => {
    const tally = new MinuteTally(10);
    expect([0, 1, 2].map((at) => tally.note("a", at))).toEqual([
      { kind: "first", before: 0, key: "a" },
      { kind: "counted", key: "a" },
      { kind: "counted", key: "a" },
    ]);
    expect(tally.note("a", MINUTE)).toEqual({ kind: "first", before: 2, key: "a" });
    expect(tally.note("a", 3 * MINUTE)).toEqual({ kind: "first", before: 0, key: "a" });
  });

  test("reports nothing of the current minute, and each finished count once", () => {
    const tally = new MinuteTally(10);
    for (let call = 0; call < 5; call++) tally.note("a", 0);
    tally.note("b", 0);
    expect(tally.ended(MINUTE - 1)).toEqual([]);
    expect(tally.ended(MINUTE)).toEqual([{ key: "a", count: 4 }]);
    expect(tally.ended(MINUTE)).toEqual([]);
    expect(tally.note("a", MINUTE)).toEqual({ kind: "first", before: 0, key: "a" });
  });

  test("combines keys beyond its limit under one name", () => {
    const tally = new MinuteTally(2);
    const said = ["a", "b", "c", "d", "a"].map((key) => tally.note(key, 0));
    expect(said.map((each) => each.key)).toEqual(["a", "b", "others", "others", "a"]);
    expect(said.map((each) => each.kind)).toEqual(["first", "first", "first", "counted", "counted"]);
  });

  test("loses no call, whatever arrives when, and whenever it is read", () => {
    const step = fc.record({
      key: fc.constantFrom("a", "b", "c", "d", "e"),
      after: fc.constantFrom(0, 0, 0, 1_000, MINUTE, 3 * MINUTE, -MINUTE),
      asks: fc.integer({ min: 0, max: 9 }).map((dice) => dice === 0),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 4 }), (played, limit) => {
        const tally = new MinuteTally(limit);
        let now = 100 * MINUTE;
        let said = 0;
        const asked = () => {
          for (const { count } of tally.ended(now)) said += count;
        };
        for (const { key, after, asks } of played) {
          now += after;
          const notice = tally.note(key, now);
          if (notice.kind === "first") said += 1 + notice.before;
          if (asks) asked();
        }
        now += 2 * MINUTE;
        asked();
        expect(said).toBe(played.length);
      }),
      { numRuns: 1_000 },
    );
  });

  test("reports no key twice in one minute of a clock that moves forward", () => {
    const step = fc.record({
      key: fc.constantFrom("a", "b", "c"),
      after: fc.constantFrom(0, 0, 5_000, MINUTE),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (played) => {
        const tally = new MinuteTally(10);
        const said = new Set<string>();
        let now = 0;
        for (const { key, after } of played) {
          now += after;
          if (tally.note(key, now).kind !== "first") continue;
          const minute = `${key} ${Math.floor(now / MINUTE)}`;
          expect(said.has(minute)).toBe(false);
          said.add(minute);
        }
      }),
    );
  });
});

describe("leases", () => {
  test("count slots in use, per group and in total, whatever is taken and released, by whom and how often", () => {
    const group = fc.integer({ min: 1, max: 3 });
    const owner = fc.constantFrom("a", "b", "c", "d", "e", "f");
    const step = fc.oneof(fc.record({ take: owner, group }), fc.record({ release: owner }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (played) => {
        const leases = new Leases();
        const held = new Map<string, number>();
        for (const each of played) {
          if ("take" in each) {
            expect(leases.take(each.group, each.take)).toBe(!held.has(each.take));
            if (!held.has(each.take)) held.set(each.take, each.group);
          } else {
            leases.release(each.release);
            held.delete(each.release);
          }
          expect(leases.total).toBe(held.size);
          for (const id of [1, 2, 3]) {
            expect(leases.held(id)).toBe([...held.values()].filter((of) => of === id).length);
          }
        }
      }),
    );
  });
});

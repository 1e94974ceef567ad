import { expect, test } from "bun:test";
import fc from "fast-check";
import { Slots } from "../../../src/connectors/outbound/slots.ts";

test("beyond either limit no slot is given, and the limit is named", () => {
  const slots = new Slots(3, 2);
  const first = slots.take("a");
  slots.take("a");
  expect(slots.take("a")).toBe("own");
  slots.take("b");
  expect(slots.take("b")).toBe("all");
  if (typeof first === "string") throw new Error("it was free");
  first();
  first();
  expect(slots.taken).toBe(2);
  expect(typeof slots.take("b")).toBe("function");
  expect(slots.take("b")).toBe("own");
});

test("in any order of taking and returning, no limit is exceeded, and all slots are returned", () => {
  const step = fc.record({ owner: fc.constantFrom("a", "b", "c"), back: fc.option(fc.nat(20)) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const slots = new Slots(5, 3);
      const held: { owner: string; release: () => void }[] = [];
      for (const { owner, back } of steps) {
        if (back === null) {
          const own = held.filter((each) => each.owner === owner).length;
          const release = slots.take(owner);
          const refused = own >= 3 ? "own" : held.length >= 5 ? "all" : undefined;
          if (typeof release === "string") expect<string | undefined>(release).toBe(refused);
          else {
            expect(refused).toBeUndefined();
            held.push({ owner, release });
          }
        } else {
          const [given] = held.splice(back % Math.max(1, held.length), 1);
          given?.release();
          given?.release();
        }
        expect(slots.taken).toBe(held.length);
        expect(held.length).toBeLessThanOrEqual(5);
      }
      for (const { release } of held) release();
      expect(slots.taken).toBe(0);
      expect(typeof slots.take("a")).toBe("function");
    }),
    { numRuns: 500 },
  );
});

test("a group of owners takes at most three quarters, and later owners find what they need", () => {
  const slots = new Slots(96, 48);
  const taken = (group: number): number => {
    let count = 0;
    for (let at = 0; at < 200; at++)
      if (typeof slots.take(`${group}-${at % 9}`, group) !== "string") count += 1;
    return count;
  };
  expect(taken(1)).toBe(72);
  expect(slots.take("another", 1)).toBe("group");
  expect(taken(2)).toBe(18);
  expect(taken(3)).toBeGreaterThan(0);
  expect(slots.taken).toBeLessThan(96);
});

import { expect, test } from "bun:test";
import { bulkOf } from "../../../src/connectors/arguments/bulk.ts";
import { innerOf, sizeOf } from "../../../src/connectors/arguments/json.ts";

/** A list that counts how often its indices are enumerated as names, which costs 1 µs for each item. */
function watched(length: number) {
  const state = { listed: 0, read: 0 };
  const list = new Proxy(new Array<number>(length).fill(1), {
    ownKeys(target) {
      state.listed += 1;
      return Reflect.ownKeys(target);
    },
    get(target, name, receiver) {
      if (typeof name === "string" && /^\d+$/.test(name)) state.read += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return { list, state };
}

test("a list of too many items is refused without reading them", () => {
  const { list, state } = watched(1_000_000);
  expect(bulkOf({ list }, 10_000)).toBeUndefined();
  expect(sizeOf({ list }, 10_000)).toBe(10_001);
  expect(state).toEqual({ listed: 0, read: 0 });
});

test("each item of a list is counted once, and never as a named property", () => {
  const { list, state } = watched(1_000);
  expect(bulkOf({ list }, 10_000)?.values).toBe(1_002);
  expect(sizeOf({ list }, 10_000)).toBe(1_002);
  expect(state).toEqual({ listed: 0, read: 2_000 });
  expect(innerOf({ a: 1, b: [2] })).toEqual([1, [2]]);
});

import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseListen } from "../../src/config/listen.ts";
import { distance, nearest } from "../../src/config/nearest.ts";

test.each([
  ["", "", 0],
  ["a", "", 1],
  ["kitten", "sitting", 3],
  ["limits", "limts", 1],
  ["flaw", "lawn", 2],
] as const)("from %j to %j it is %d", (left, right, steps) => {
  expect(distance(left, right)).toBe(steps);
  expect(distance(right, left)).toBe(steps);
});

test("the distance is a metric", () => {
  const word = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(word, word, word, (a, b, c) => {
      expect(distance(a, b) === 0).toBe(a === b);
      expect(distance(a, c)).toBeLessThanOrEqual(distance(a, b) + distance(b, c));
    }),
  );
});

test("the first of equally near words is chosen; without words, none", () => {
  expect(nearest("cat", ["dog", "car", "bat"])).toBe("car");
  expect(nearest("cat", [])).toBeUndefined();
});

test.each([
  ["127.0.0.1:8420", { host: "127.0.0.1", port: 8420 }],
  ["[::1]:8420", { host: "::1", port: 8420 }],
  ["[fe80::1%eth0]:1", { host: "fe80::1%eth0", port: 1 }],
  ["gate-1.example.org:65535", { host: "gate-1.example.org", port: 65_535 }],
  ["localhost:0", { host: "localhost", port: 0 }],
  [":8420", undefined],
  ["8420", undefined],
  ["localhost", undefined],
  ["localhost:", undefined],
  ["localhost:-1", undefined],
  ["localhost:65536", undefined],
  ["localhost:80a", undefined],
  ["::1:8420", undefined],
  ["[127.0.0.1]:1", undefined],
  ["a b:1", undefined],
  ["a:1\n", undefined],
  ["http://a:1", undefined],
] as const)("the address %j", (text, expected) => {
  expect(parseListen(text)).toEqual(expected);
});

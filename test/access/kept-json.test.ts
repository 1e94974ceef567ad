/** Parsed texts of rows take a bounded share of memory, and the same text gives the same value while it is used. */
import { expect, test } from "bun:test";
import { KeptJson } from "../../src/access/kept-json.ts";

const texts = (count: number, length: number) =>
  Array.from({ length: count }, (_, index) => JSON.stringify([String(index).padEnd(length, "x")]));

/** How many of the texts give the value that they gave before. */
function kept(json: KeptJson<object>, all: readonly string[]): number {
  const before = all.map((text) => json.parse(text));
  return all.toReversed().filter((text, index) => json.parse(text) === before.at(-1 - index)).length;
}

test("no more characters are kept than allowed", () => {
  const long = kept(new KeptJson(), texts(2_000, 1_000));
  expect(long).toBeGreaterThan(400);
  expect(long).toBeLessThan(1_100);
});

test("no more short texts are kept than allowed", () => {
  const short = kept(new KeptJson(), texts(100_000, 6));
  expect(short).toBeGreaterThan(10_000);
  expect(short).toBeLessThan(30_000);
});

test("a text that is in use keeps its value, however many others come", () => {
  const json = new KeptJson(10_000);
  const value = json.parse('["*"]');
  for (const text of texts(1_000, 100)) {
    json.parse(text);
    expect(json.parse('["*"]')).toBe(value);
  }
});

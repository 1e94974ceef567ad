/** Texts designed to be slow to normalise cost no more than others. The tests' time limit enforces that. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { wordsOf } from "../../src/vault/terms/words.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { search, write } from "../support/vault.ts";

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ clock: new FakeClock() });
  await write(gateway, { title: "Boats", text: "A sloop has one mast." });
});
afterAll(() => gateway.stop());

/** Marks above and below a letter alternately: each has to be sorted among all before it. */
const PAIR = "\u0301\u0327";
/** In quadratic time this would take 18 seconds. */
const MANY = 100_000;

describe("a run of combining marks", () => {
  test.each([
    ["a letter", "a"],
    ["a word", "resume"],
    ["a capital that is two letters in lower case", "\u0130"],
    ["a Hangul syllable", "\ud55c"],
    ["nothing", ""],
  ])("after %s means the same as its first eight", (_, base) => {
    const few = wordsOf(base + PAIR.repeat(4));
    expect(wordsOf(base + PAIR.repeat(MANY / 2))).toEqual(few);
    expect(wordsOf(`${base}${PAIR.repeat(MANY / 2)} end`)).toEqual([...few, "end"]);
  });

  test("of a few is read as usual", () => {
    expect(wordsOf(`caf${"e\u0301"} Vie\u0323\u0302t ${"a".normalize("NFD")}\u0301\u0302\u0303`)).toEqual([
      "cafe",
      "viet",
      "a",
    ]);
  });

  test("of many kinds, each of a different size, is also cut", () => {
    // U+0344 is two marks, and the last one is outside the first plane.
    expect(wordsOf(`a${"\u0344\u0316\u{1d165}".repeat(30_000)}`)).toEqual(wordsOf("a\u0344\u0316"));
  });
});

/** The greatest number of words that a text may become, because a document's index grows with it. */
const BOMBS: readonly (readonly [string, string, number])[] = [
  // One letter that expands to eighteen, which is four words. The last word of one joins the first word of the next.
  ["U+FDFA, which is four words", "\ufdfa".repeat(50_000), 150_001],
  ["U+FDFA with spaces", "\ufdfa ".repeat(25_000), 100_000],
  ["Hangul jamo, which become syllables", "\u1112\u1161\u11ab".repeat(33_000), 1],
  ["only leading jamo", "\u1100".repeat(100_000), 1],
  ["old jamo", "\ua960\ud7b0\ud7cb".repeat(33_000), 1],
  ["ligatures", "\ufb03".repeat(100_000), 1],
  ["a square that is five letters", "\u3300".repeat(30_000), 300_000],
  ["circled numbers", "\u2473".repeat(100_000), 1],
];

test.each(BOMBS)("%s becomes no more words than allowed", (_, text, most) => {
  const words = wordsOf(text);
  expect(words.length).toBeLessThanOrEqual(most);
  expect(words.length).toBeGreaterThan(0);
});

describe("long runs of marks, searched for or written, take no longer than others", () => {
  const texts = [
    ["marks", `a${PAIR.repeat(49_999)}`],
    ["marks after a word", `sloop${PAIR.repeat(49_990)}`],
    ...BOMBS.map(([name, text]) => [name, text.slice(0, 100_000)] as const),
  ] as const;

  test.each(texts)("a search for %s", async (name, query) => {
    const { results } = await search(gateway, { query, mode: "keyword" });
    if (name === "marks after a word") expect(results).toHaveLength(1);
    await search(gateway, { query });
    expect((await search(gateway, { query: "sloop" })).results[0]?.title).toBe("Boats");
  });

  test("a document of a hundred thousand marks", async () => {
    const text = `A yawl${PAIR.repeat(MANY / 2)} has two masts.`;
    const { id } = await write(gateway, { title: "Yawls", text });
    const { results } = await search(gateway, { query: "two masts", mode: "keyword" });
    expect(results.map(({ document_id }) => document_id)).toContain(id);
  });
});

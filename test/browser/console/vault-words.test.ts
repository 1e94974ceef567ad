/** A page highlights in a passage exactly what the search looked for. */
import { describe, expect, test } from "bun:test";
import { slicesOf } from "../../../src/console/pages/vault/document/slices.ts";
import { pairText, readPairs, writePairs } from "../../../src/console/pages/vault/pairs.ts";
import { mark, wordsOf } from "../../../src/console/pages/vault/search/marks.ts";
import { wordsOf as indexedWordsOf, termOf } from "../../../src/vault/terms/words.ts";

const marked = (question: string, text: string, corrected: Record<string, string[]> = {}) =>
  mark(text, wordsOf(question, corrected))
    .map((piece) => (piece.isMarked ? `[${piece.text}]` : piece.text))
    .join("");

describe("a passage is marked", () => {
  test.each([
    ["nowhere, if it contains no word of the question", "zebra", "A refund is paid.", "A refund is paid."],
    ["not within a word", "fund", "A refund is paid.", "A refund is paid."],
    ["not at words without meaning", "what is the refund", "The refund is", "The [refund] is"],
    ["at such words, if there are no others", "to be", "to be or not", "[to] [be] or not"],
    ["at other forms of a word", "approves refunds", "Refund approval", "[Refund] [approval]"],
    ["whatever its case and accents", "CAFE", "Café, cafe\u0301, CAFÉ", "[Café], [cafe\u0301], [CAFÉ]"],
    ["at pairs of characters, in scripts without blanks", "退款", "关于退款政策", "关于[退款]政策"],
    ["at a single character", "退", "退款", "[退]款"],
    ["at words next to such a script", "iPhone", "新iPhone手机", "新[iPhone]手机"],
  ])("%s", (_, question, text, expected) => {
    expect(marked(question, text)).toBe(expected);
  });

  test("at the words that the server found for an unknown word of the question", () => {
    expect(marked("refnd", "A refund")).toBe("A refund");
    expect(marked("refnd", "A refund", { refnd: ["refund"] })).toBe("A [refund]");
  });
});

test("a word is marked exactly where the index has the same term", () => {
  const words = [
    "Policies",
    "policy",
    "Überweisung",
    "uberweisungen",
    "2026",
    "ﬁne",
    "fine",
    "approvals",
    "naïve",
    "paid",
  ];
  for (const question of words) {
    const terms = new Set(indexedWordsOf(question).map(termOf));
    for (const word of words) {
      const isHeld = indexedWordsOf(word).some((indexed) => terms.has(termOf(indexed)));
      expect([question, word, marked(question, word)]).toEqual([question, word, isHeld ? `[${word}]` : word]);
    }
  }
});

describe("typed metadata", () => {
  test.each([["lang"], ["=en"], ['a="open'], ['"a=1']])("is refused: %s", (line) => {
    expect(readPairs(`ok=1\n${line}`).error).toContain("name=value");
  });

  test("is text, a number or true, and reads back unchanged", () => {
    expect(readPairs(' lang = en \n\nyear=2026\nlive=true\nzip="01234"\n"a=b"=c').pairs).toEqual({
      lang: "en",
      year: 2026,
      live: true,
      zip: "01234",
      "a=b": "c",
    });
    const pairs = {
      a: "2026",
      b: 2026,
      c: "true",
      d: false,
      "e=f": '"',
      g: " x ",
      h: "a\nb",
      i: "",
      j: -1.5e-7,
    };
    expect(readPairs(writePairs(pairs)).pairs).toEqual(pairs);
    expect(pairText("lang", "en")).toBe("lang=en");
  });
});

test("a long text is cut into short slices that add up to the text, without splitting a character", () => {
  const texts = [
    "",
    "short",
    "a line of words\n".repeat(5_000),
    "word ".repeat(20_000),
    "x".repeat(30_000),
    "😀".repeat(20_000),
  ];
  for (const text of texts) {
    const slices = slicesOf(text);
    expect(slices.map((slice) => slice.text).join("") === text).toBe(true);
    expect(slices.every((slice) => slice.text.length <= 9_001 && slice.text.isWellFormed())).toBe(true);
    expect(slices.every((slice) => slice.text === text.slice(slice.start, slice.end))).toBe(true);
  }
});

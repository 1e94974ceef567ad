import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { spellingsNear, termsNear } from "../../../src/vault/search/spelling.ts";
import { LEXICAL_DIMENSIONS, lexicalVector } from "../../../src/vault/terms/lexical.ts";
import { hash53, isStopWord, termOf, wordsOf } from "../../../src/vault/terms/words.ts";

const src = join(import.meta.dir, "../../../src/vault/terms");
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
);
const plainWord = fc.string({
  unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz"),
  minLength: 4,
  maxLength: 24,
});

describe("wordsOf", () => {
  test.each([
    ["Refunds are paid!", ["refunds", "are", "paid"]],
    ["Café RÉSUMÉ naïve", ["cafe", "resume", "naive"]],
    ["cafe\u0301", ["cafe"]],
    ["ＦＵＬＬ ｗｉｄｔｈ", ["full", "width"]],
    ["ﬁne ½ x²", ["fine", "1", "2", "x2"]],
    ["𝐑efund ℡ İ", ["refund", "tel", "i"]],
    ["don't e-mail a_b", ["don", "t", "e", "mail", "a", "b"]],
    ["退款", ["退", "退款", "款"]],
    ["GPT退款v2", ["gpt", "退", "退款", "款", "v2"]],
    ["Straße ΟΔΟΣ", ["straße", "οδος"]],
    ["😀 👍🏽 !?", []],
    ["", []],
    ["\0\u200b\u202e", []],
  ])("of %j", (text, expected) => {
    expect(wordsOf(text)).toEqual(expected);
  });

  test("are letters and digits in lower case, and stay the same when read again", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        for (const word of wordsOf(text)) {
          expect(word).toMatch(/^[\p{L}\p{N}]+$/u);
          expect(wordsOf(word)).toContain(word);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("do not depend on how an accent is written, nor on what separates them", () => {
    fc.assert(
      fc.property(anyText, anyText, (left, right) => {
        fc.pre(left.isWellFormed() && right.isWellFormed());
        expect(wordsOf(left.normalize("NFD"))).toEqual(wordsOf(left.normalize("NFC")));
        expect(wordsOf(`${left} ${right}`)).toEqual(wordsOf(`${left}\n—\t${right}`));
      }),
      { numRuns: 500 },
    );
  });
});

describe("terms", () => {
  test("are integers of 53 bits, always the same for one word", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 30 }), (word) => {
        expect(Number.isSafeInteger(hash53(word))).toBe(true);
        expect(hash53(word)).toBeGreaterThanOrEqual(0);
        expect(termOf(word)).toBe(termOf(`${word}`));
      }),
    );
  });

  test("of 300,000 different texts are different", () => {
    const seen = new Set<number>();
    for (let at = 0; at < 100_000; at++) {
      for (const text of [`word${at}`, at.toString(36), `${at}a${at % 7}`]) seen.add(hash53(text));
    }
    const texts = new Set<string>();
    for (let at = 0; at < 100_000; at++) {
      for (const text of [`word${at}`, at.toString(36), `${at}a${at % 7}`]) texts.add(text);
    }
    expect(seen.size).toBe(texts.size);
  });

  test("unite the forms of a word, and separate different words", () => {
    for (const forms of [
      ["refund", "refunds", "refunded", "refunding"],
      ["connect", "connected", "connection", "connections"],
    ]) {
      expect(new Set(forms.map(termOf)).size).toBe(1);
    }
    expect(new Set(["refund", "return", "support", "supportx"].map(termOf)).size).toBe(4);
  });

  test("remembered words do not keep the texts in memory that they were cut from", () => {
    // Runs in a separate process, because what the engine shares between strings depends on what ran before.
    const program = `
      import { lexicalVector } from "${src}/lexical.ts";
      import { termOf, wordsOf } from "${src}/words.ts";
      const text = (at) => Buffer.from("x ".repeat(200_000) + " aquitelongandunusualword" + at + " ").toString();
      for (let at = 0; at < 600; at++) {
        const words = wordsOf(text(at).slice(399_000));
        for (const word of words) termOf(word);
        lexicalVector(words);
        if (at % 100 === 0) Bun.gc(true);
      }
      Bun.gc(true);
      console.log(process.memoryUsage().heapUsed);`;
    const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program]);
    expect(stderr.toString()).toBe("");
    // 240 MB of texts were processed.
    expect(Number(stdout.toString())).toBeGreaterThan(0);
    expect(Number(stdout.toString())).toBeLessThan(60_000_000);
  });
});

describe("spellings near a word", () => {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const edit = fc.record({
    kind: fc.constantFrom("without", "swapped", "another", "more"),
    at: fc.nat({ max: 24 }),
    letter: fc.constantFrom(...letters),
  });
  function edited(word: string, { kind, at, letter }: { kind: string; at: number; letter: string }): string {
    const place = at % (word.length + (kind === "more" ? 1 : 0));
    const [before, rest] = [word.slice(0, place), word.slice(place)];
    if (kind === "without") return before + rest.slice(1);
    if (kind === "swapped") return before + (rest[1] ?? "") + (rest[0] ?? "") + rest.slice(2);
    if (kind === "another") return before + letter + rest.slice(1);
    return before + letter + rest;
  }

  test("contain every single-letter error, and nothing further away", () => {
    fc.assert(
      fc.property(plainWord, edit, (word, slip) => {
        expect([...spellingsNear(word)]).toContain(edited(word, slip));
      }),
      { numRuns: 300 },
    );
    fc.assert(
      fc.property(plainWord, (word) => {
        for (const spelling of spellingsNear(word)) {
          expect(spelling).toMatch(/^[a-z]+$/);
          expect(isOneSlip(word, spelling)).toBe(true);
        }
      }),
      { numRuns: 30 },
    );
  });

  test.each(["abc", "a", "", "a".repeat(25), "café", "refund1", "Refund", "re fund", "退款退款"])(
    "do not exist for %j",
    (word) => {
      expect([...spellingsNear(word)]).toEqual([]);
      expect(termsNear(word)).toHaveLength(0);
    },
  );

  test("their terms ascend, each once, and none is a stop word's", () => {
    fc.assert(
      fc.property(plainWord, (word) => {
        const terms = Array.from(termsNear(word));
        expect(terms).toEqual([...new Set(terms)].toSorted((left, right) => left - right));
        for (const stop of ["not", "the", "with", "them", "and"]) expect(terms).not.toContain(hash53(stop));
      }),
      { numRuns: 60 },
    );
  });

  test("a word that was written with one error is found by its terms", () => {
    const real = [
      "refund",
      "invoice",
      "delivery",
      "warranty",
      "shipments",
      "settlements",
      "acquisition",
      "running",
    ];
    let missed = 0;
    let all = 0;
    for (const word of real) {
      for (const slipped of spellingsNear(word)) {
        if (slipped === word || slipped.length < 4 || slipped.length > 24 || isStopWord(slipped)) continue;
        all += 1;
        if (termOf(slipped) !== termOf(word) && !Array.from(termsNear(slipped)).includes(termOf(word)))
          missed += 1;
      }
    }
    expect(all).toBeGreaterThan(2_000);
    // The missed errors are those that change where the stem ends.
    expect(missed).toBeLessThanOrEqual(all * 0.05);
  });

  /**
   * Whether one letter was omitted, added or replaced, or two were swapped. It compares the words rather than
   * generating errors.
   */
  function isOneSlip(word: string, other: string): boolean {
    let start = 0;
    while (start < word.length && word[start] === other[start]) start += 1;
    let end = 0;
    while (
      end < Math.min(word.length, other.length) - start &&
      word[word.length - 1 - end] === other[other.length - 1 - end]
    ) {
      end += 1;
    }
    const [left, right] = [word.slice(start, word.length - end), other.slice(start, other.length - end)];
    if (left.length + right.length <= 1 || (left.length === 1 && right.length === 1)) return true;
    return left.length === 2 && right.length === 2 && left[0] === right[1] && left[1] === right[0];
  }
});

describe("lexicalVector", () => {
  const words = fc.array(fc.oneof(plainWord, fc.constantFrom("the", "of", "退款", "x")), { maxLength: 30 });
  const lengthOf = (vector: Float32Array) => Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0));

  test("has length one and the right dimensions", () => {
    fc.assert(
      fc.property(words, (given) => {
        const vector = lexicalVector(given);
        if (vector === null) return;
        expect(vector).toHaveLength(LEXICAL_DIMENSIONS);
        expect(lengthOf(vector)).toBeCloseTo(1, 5);
        expect(vector.every(Number.isFinite)).toBe(true);
      }),
    );
  });

  test("is the same for the same words in any order, even after many others", () => {
    fc.assert(
      fc.property(words, (given) => {
        const first = lexicalVector(given);
        expect(lexicalVector(given.toReversed())).toEqual(first);
      }),
    );
    const before = lexicalVector(["refund", "invoice"]);
    for (let at = 0; at < 25_000; at++) lexicalVector([`filling${at}`]);
    expect(lexicalVector(["refund", "invoice"])).toEqual(before);
  });

  test("is null if there is nothing to hash", () => {
    for (const none of [[], ["the"], ["the", "of", "and"]]) expect(lexicalVector(none)).toBeNull();
  });

  test("is closer for similar spellings than for others", () => {
    const similarity = (left: string, right: string) => {
      const [a, b] = [lexicalVector([left]), lexicalVector([right])];
      return a && b ? a.reduce((sum, each, at) => sum + each * (b[at] as number), 0) : 0;
    };
    expect(similarity("warranty", "warranty")).toBeCloseTo(1, 5);
    expect(similarity("warranty", "waranty")).toBeGreaterThan(0.4);
    expect(similarity("warranty", "waranty")).toBeGreaterThan(similarity("warranty", "invoice") + 0.3);
  });
});

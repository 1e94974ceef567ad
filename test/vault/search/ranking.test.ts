import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Locks } from "../../../src/base/locks.ts";
import { analysePassage } from "../../../src/vault/prepare/analyse.ts";
import { WordRanking } from "../../../src/vault/search/bm25.ts";
import { correctionsOf, readQuestion } from "../../../src/vault/search/query.ts";
import { byScore, TopK } from "../../../src/vault/search/top-k.ts";
import { type PassageTerms, Segment } from "../../../src/vault/segments/segment.ts";
import { encodeSegment, mergeSegments } from "../../../src/vault/segments/segment-writer.ts";

/** The values tuned in `bm25.ts` and `analyse.ts`, repeated here so that changing one is a deliberate decision. */
const K1 = 1.2;
const B = 0.6;
const TITLE_WEIGHT = 3;

/** Words that equal their stems, no stop words, and none within one typing error of another. */
const VOCABULARY = [
  "zebra",
  "walrus",
  "badger",
  "otter",
  "lynx",
  "penguin",
  "gorilla",
  "donkey",
  "kiwi",
  "hornet",
];
const text = fc.array(fc.constantFrom(...VOCABULARY), { minLength: 1, maxLength: 25 });
const collection = fc.array(
  fc.record({ title: fc.array(fc.constantFrom(...VOCABULARY), { maxLength: 3 }), text }),
  {
    minLength: 1,
    maxLength: 20,
  },
);
const question = fc.uniqueArray(fc.constantFrom(...VOCABULARY), { minLength: 1, maxLength: 5 });

interface Written {
  readonly title: readonly string[];
  readonly text: readonly string[];
}

const bare = ({ key, score }: { readonly key: number; readonly score: number }) => ({ key, score });

/** BM25 directly from its definition (Robertson and Zaragoza 2009, with Lucene's idf). */
function bm25(documents: readonly Written[], query: readonly string[]): number[] {
  const count = (words: readonly string[], word: string) => words.filter((each) => each === word).length;
  const lengths = documents.map(({ title, text: words }) => title.length + words.length);
  const average = lengths.reduce((sum, length) => sum + length, 0) / documents.length;
  return documents.map((document, at) => {
    let score = 0;
    for (const word of query) {
      const holders = documents.filter(
        ({ title, text: words }) => title.includes(word) || words.includes(word),
      );
      const idf = Math.log(1 + (documents.length - holders.length + 0.5) / (holders.length + 0.5));
      const frequency = TITLE_WEIGHT * count(document.title, word) + count(document.text, word);
      const norm = K1 * (1 - B + (B * (lengths[at] as number)) / average);
      score += (idf * frequency * (K1 + 1)) / (frequency + norm);
    }
    return score;
  });
}

function passagesOf(documents: readonly Written[]): PassageTerms[] {
  return documents.map(({ title, text: words }, key) => analysePassage(key, title, [], words.join(" ")));
}

/** The passages in this many segments, dealt out one by one. */
function segmentsOf(documents: readonly Written[], count: number): Segment[] {
  const passages = passagesOf(documents);
  return Array.from({ length: count }, (_, part) => passages.filter((_passage, at) => at % count === part))
    .filter((part) => part.length > 0)
    .map((part) => new Segment(encodeSegment(part)));
}

describe("WordRanking", () => {
  test("is BM25, however the passages are spread over segments", () => {
    fc.assert(
      fc.property(collection, question, fc.integer({ min: 1, max: 5 }), (documents, words, parts) => {
        const expected = bm25(documents, words);
        const segments = segmentsOf(documents, parts);
        const ranking = new WordRanking(readQuestion(words.join(" "), segments), segments);
        for (const [key, score] of expected.entries()) {
          expect(Math.abs(ranking.scoreOf(key) - score)).toBeLessThanOrEqual(1e-9);
        }
        const best = ranking.best(100, null);
        expect(best.map(({ key }) => key).toSorted()).toEqual(
          expected.flatMap((score, key) => (score > 0 ? [key] : [])).toSorted(),
        );
        expect(best).toEqual(best.toSorted(byScore));
        expect(ranking.best(3, null)).toEqual(best.slice(0, 3));
        expect(ranking.scoreOf(1_000_000)).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  test("merging and splitting segments changes no score by a bit", () => {
    fc.assert(
      fc.property(collection, question, (documents, words) => {
        const parts = segmentsOf(documents, 4);
        const whole = [new Segment(mergeSegments(parts) as Uint8Array)];
        const best = (segments: readonly Segment[]) =>
          new WordRanking(readQuestion(words.join(" "), segments), segments).best(100, null).map(bare);
        expect(best(whole)).toEqual(best(parts));
        expect(best(parts.toReversed())).toEqual(best(parts));
      }),
    );
  });

  test("can be restricted to named documents, whose scores do not change", () => {
    const documents = VOCABULARY.map((word) => ({ title: [], text: [word, "zebra"] }));
    const passages = passagesOf(documents).map((passage, at) => ({ ...passage, key: at * 65_536 + 3 }));
    const segments = [new Segment(encodeSegment(passages))];
    const ranking = new WordRanking(readQuestion("zebra", segments), segments);
    const all = ranking.best(100, null);
    const only = ranking.best(100, new Set([2, 5]));
    expect(only.map(({ key }) => key)).toEqual([2 * 65_536 + 3, 5 * 65_536 + 3]);
    for (const { key, score } of only) expect(all.find((each) => each.key === key)?.score).toBe(score);
    expect(ranking.best(100, new Set())).toEqual([]);
  });
});

describe("readQuestion", () => {
  const segments = segmentsOf([{ title: [], text: ["zebra", "walrus", "the"] }], 1);

  test("of nothing, and of unknown words, has no terms", () => {
    for (const query of ["", "?!", "hippopotamus", "zebr"]) {
      const { terms } = readQuestion(query, []);
      expect(terms).toEqual([]);
    }
  });

  test("uses a stop word only if there is nothing else", () => {
    expect(readQuestion("the zebra", segments).terms).toHaveLength(1);
    expect(readQuestion("the", segments).terms).toHaveLength(1);
  });

  test("corrects only with words of these segments, and never a known word", () => {
    const others = segmentsOf([{ title: [], text: ["zebru", "walris"] }], 1);
    expect(correctionsOf(readQuestion("zebrq", segments))).toEqual({ zebrq: ["zebra"] });
    expect(correctionsOf(readQuestion("zebrq", others))).toEqual({ zebrq: ["zebru"] });
    expect(correctionsOf(readQuestion("zebra", others))).toEqual({ zebra: ["zebru"] });
    expect(correctionsOf(readQuestion("zebra", segments))).toEqual({});
    expect(readQuestion("zebra zebrq", segments).terms).toHaveLength(1);
  });

  test("looks up a page-long question only by its first words", () => {
    const page = Array.from({ length: 5_000 }, (_, at) => `nobody${at}`).join(" ");
    expect(readQuestion(`${page} zebra`, segments).terms).toEqual([]);
    expect(readQuestion(`zebra ${page}`, segments).terms).toHaveLength(1);
  });
});

describe("Best", () => {
  const scored = fc.uniqueArray(
    fc.record({ key: fc.nat({ max: 10_000 }), score: fc.constantFrom(-1, 0, 0.25, 0.5, 1, 1e-12, 3) }),
    { selector: ({ key }) => key, maxLength: 60 },
  );

  test("keeps the items that sorting would put first, with equals ordered by their keys", () => {
    fc.assert(
      fc.property(scored, fc.integer({ min: 1, max: 20 }), (given, limit) => {
        const best = new TopK(limit);
        for (const { key, score } of given) best.offer(key, score);
        const expected = given
          .toSorted((left, right) => right.score - left.score || left.key - right.key)
          .slice(0, limit);
        expect(best.sorted().map(bare)).toEqual(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  test("has the score of its last item as its threshold once full", () => {
    fc.assert(
      fc.property(scored, fc.integer({ min: 1, max: 20 }), (given, limit) => {
        const best = new TopK(limit);
        for (const { key, score } of given) {
          const { threshold } = best;
          const before = best.sorted();
          best.offer(key, score);
          if (score < threshold) expect(best.sorted()).toEqual(before);
        }
        const worst = given.length < limit ? Number.NEGATIVE_INFINITY : best.sorted().at(-1)?.score;
        expect(best.threshold).toBe(worst as number);
      }),
    );
  });
});

describe("Locks", () => {
  test("runs one after another for each key, in order of request, and keys in parallel", async () => {
    const locks = new Locks();
    const log: string[] = [];
    const gates = new Map<string, () => void>();
    const work = (key: number, name: string) =>
      locks.run(key, async () => {
        log.push(`${name} begins`);
        await new Promise<void>((resolve) => gates.set(name, resolve));
        log.push(`${name} ends`);
        return name;
      });
    const all = [work(1, "a"), work(1, "b"), work(2, "c"), work(1, "d")];
    await Bun.sleep(0);
    expect(log).toEqual(["a begins", "c begins"]);
    gates.get("c")?.();
    expect(await all[2]).toBe("c");
    for (const name of ["a", "b", "d"]) {
      while (!gates.has(name)) await Bun.sleep(0);
      gates.get(name)?.();
    }
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d"]);
    expect(log).toEqual([
      ...["a begins", "c begins", "c ends", "a ends", "b begins", "b ends", "d begins", "d ends"],
    ]);
  });

  test("a failure affects only its own caller", async () => {
    const locks = new Locks();
    const failing = locks.run(1, () => Promise.reject(new Error("broken")));
    const after = locks.run(1, async () => "fine");
    await expect(failing).rejects.toThrow("broken");
    expect(await after).toBe("fine");
    expect(await locks.run(1, async () => "later")).toBe("later");
  });
});

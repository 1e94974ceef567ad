import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseOptions } from "../../scripts/benchmarks/options.ts";
import { collectionsIn, gradesOf, readCollection } from "../../scripts/benchmarks/vault/collections.ts";
import { PlainFts5 } from "../../scripts/benchmarks/vault/fts5.ts";
import { ndcg, recall } from "../../scripts/benchmarks/vault/metrics.ts";
import { Passages, SCOPES } from "../../scripts/benchmarks/vault/passages.ts";
import { Random } from "../../scripts/benchmarks/vault/random.ts";
import { mistype } from "../../scripts/benchmarks/vault/typos.ts";

const grades = new Map([
  ["a", 3],
  ["b", 2],
  ["c", 3],
  ["d", 0],
  ["e", 1],
  ["f", 2],
]);

describe("nDCG", () => {
  test("is that of trec_eval: linear gain, discounted by log2 of rank + 1", () => {
    // The example of https://en.wikipedia.org/wiki/Discounted_cumulative_gain: DCG 6.861, IDCG 7.141 (for these six).
    expect(ndcg(["a", "b", "c", "d", "e", "f"], grades, 6)).toBeCloseTo(6.861 / 7.141, 3);
  });

  test.each([
    ["the best ranking", ["a", "c", "b", "f", "e"], 1],
    ["nothing", [], 0],
    ["an unjudged document", ["x", "y"], 0],
    ["a relevant one past the cut", ["x", "x1", "x2", "x3", "x4", "x5", "a"], 0],
  ])("of %s", (_, ranking, expected) => {
    expect(ndcg(ranking, grades, 6)).toBeCloseTo(expected, 10);
  });

  test("counts a grade below 0 as 0, and is 0 if nothing is relevant", () => {
    expect(ndcg(["a", "b"], new Map([["a", -1]]), 10)).toBe(0);
    const grades = new Map([
      ["a", -1],
      ["b", 1],
    ]);
    expect(ndcg(["a", "b"], grades, 10)).toBeCloseTo(1 / Math.log2(3), 10);
  });
});

test("recall counts only relevant documents within the cut", () => {
  expect(recall(["a", "d", "x", "b"], grades, 10)).toBe(2 / 5);
  expect(recall(["a", "d", "x", "b"], grades, 3)).toBe(1 / 5);
  expect(recall(["d"], new Map([["d", 0]]), 10)).toBe(0);
});

describe("typing errors", () => {
  const text = "Induced ischemia of the myocardium raises (troponin) levels in 3 of 10 patients.";

  test("are the same for the same seed, and different for another", () => {
    const take = (seed: string) => mistype(text, new Random(seed));
    expect(take("one")).toBe(take("one"));
    expect(new Set(["1", "2", "3", "4"].map(take)).size).toBeGreaterThan(1);
  });

  test("are one edit in a word of four letters or more, in about every third word, and in at least one", () => {
    const words = text.split(" ");
    let mistyped = 0;
    const takes = 300;
    for (let seed = 0; seed < takes; seed++) {
      const changed = mistype(text, new Random(String(seed))).split(" ");
      expect(changed).toHaveLength(words.length);
      const edited = words.filter((word, index) => word !== changed[index]);
      expect(edited.length).toBeGreaterThan(0);
      for (const [index, word] of words.entries()) {
        const now = changed[index] ?? "";
        if (word === now) continue;
        expect(word.replace(/[^a-z]/gi, "").length).toBeGreaterThanOrEqual(4);
        expect(Math.abs(now.length - word.length)).toBeLessThanOrEqual(1);
      }
      mistyped += edited.length;
    }
    const long = words.filter((word) => word.replace(/[^a-z]/gi, "").length >= 4).length;
    expect(mistyped / takes / long).toBeGreaterThan(0.28);
    expect(mistyped / takes / long).toBeLessThan(0.4);
  });

  test("leave a text without such words unchanged", () => {
    expect(mistype("1 in 5, so", new Random("any"))).toBe("1 in 5, so");
  });
});

describe("a collection", () => {
  test("has grades with or without a heading", () => {
    const expected = new Map([["1", new Map([["184", 1]])]]);
    expect(gradesOf("1\t184\t1\n")).toEqual(expected);
    expect(gradesOf("query-id\tcorpus-id\tscore\r\n1\t184\t1\r\n")).toEqual(expected);
    expect(() => gradesOf("1\t184\t1\n1\t185\n")).toThrow("line 2");
  });

  test("is read from its folder, and ranked by plain FTS5", () => {
    const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
    const path = join(folder, "tiny");
    mkdirSync(path);
    const lines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).join("\n");
    writeFileSync(
      join(path, "corpus.jsonl"),
      lines([
        { _id: "1", title: "Wings", text: "The lift of a wing in a slipstream." },
        { _id: "2", title: "", text: "Heat in composite slabs." },
        { _id: "3", title: "", text: "" },
      ]),
    );
    writeFileSync(
      join(path, "queries.jsonl"),
      lines([
        { _id: "q1", text: 'wings "AND" lifting' },
        { _id: "q2", text: "judged, but nothing is relevant" },
        { _id: "q3", text: "never judged" },
      ]),
    );
    writeFileSync(join(path, "qrels.tsv"), "query\tdocument\tgrade\nq1\t1\t2\nq2\t2\t0\n");
    try {
      expect(collectionsIn(folder)).toEqual([path]);
      expect(collectionsIn(join(folder, "none"))).toEqual([]);
      const collection = readCollection(path);
      expect(collection.documents.map(({ id, title }) => [id, title])).toEqual([
        ["1", "Wings"],
        ["2", "2"],
      ]);
      expect(collection.queries.map(({ id }) => id)).toEqual(["q1"]);
      const fts5 = new PlainFts5(collection.documents);
      expect(fts5.search(collection.queries[0]?.text ?? "", 10)).toEqual(["1"]);
      expect(fts5.search("?!", 10)).toEqual([]);
      fts5.close();
      expect(parseOptions(["vault", "--collections", folder], {})).toMatchObject({ collections: folder });
      expect(parseOptions(["vault", "--collections", path], {})).toContain("there is no collection in");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("made-up passages are the same in every run, have about 120 words, and are spread over all scopes", () => {
  const [one, other] = [Passages.of(null), Passages.of(null)];
  expect(one.passage(12_345)).toEqual(other.passage(12_345));
  expect(one.query(7)).toBe(other.query(7));
  const passages = Array.from({ length: 1_000 }, (_, index) => one.passage(index));
  expect(new Set(passages.map(({ scope }) => scope)).size).toBe(SCOPES);
  expect(new Set(passages.map(({ text }) => text)).size).toBe(1_000);
  for (const { text } of passages) {
    const { length } = text.split(" ");
    expect(length).toBeGreaterThanOrEqual(112);
    expect(length).toBeLessThanOrEqual(130);
  }
  for (let index = 0; index < 100; index++) {
    const { length } = one.query(index).split(" ");
    expect(length).toBeGreaterThanOrEqual(8);
    expect(length).toBeLessThanOrEqual(14);
  }
});

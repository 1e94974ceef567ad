import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { idsOf, MODES, search as searchIn, write as writeTo } from "../support/vault.ts";

const clock = new FakeClock();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ clock });
});
afterAll(() => gateway.stop());

const write = async (scope: string, text: string, more: object = {}) =>
  (await writeTo(gateway, { text, scope, ...more })).id;
const ask = (body: object) => searchIn(gateway, body);
const search = async (body: object) => (await ask(body)).results;

/** Texts with only one word in common. */
const sentence = (at: number, word: string) =>
  `${word} ${Array.from({ length: 30 }, (_, index) => `t${at}x${index * 7 + at}`).join(" ")}.`;

describe("an answer", () => {
  test("contains exactly the contract's fields", async () => {
    const metadata = { team: "support" };
    const id = await write("shape", "Refunds take a week.", {
      source_uri: "https://example.test/r",
      metadata,
    });
    const answer = await ask({ query: "refunds", scopes: ["shape"] });
    expect(answer).toEqual({
      results: [
        {
          document_id: id,
          chunk_id: expect.stringMatching(/^chk_[0-7][0-9a-hjkmnp-tv-z]{25}$/),
          title: "A note",
          text: "Refunds take a week.",
          scope: "shape",
          score: expect.any(Number),
          source_uri: "https://example.test/r",
          start: 0,
          end: 20,
          metadata,
        },
      ],
      mode: "hybrid",
      took_ms: expect.any(Number),
    } as never);
    const explained = await ask({ query: "refunds", scopes: ["shape"], explain: true });
    expect(explained.explain).toEqual({ corrected: {} });
    expect(explained.results[0]?.explain).toEqual({
      keyword: { rank: 1, score: expect.any(Number) },
      vector: { rank: 1, score: expect.any(Number) },
      recency: null,
      duplicates: [],
    });
  });

  test.each(MODES)("reports the mode %s, and its scores decrease", async (mode) => {
    const scope = `mode-${mode}`;
    for (let at = 0; at < 12; at++) await write(scope, sentence(at, "keeper ".repeat(1 + (at % 4)).trim()));
    const { results, mode: used } = await ask({ query: "keeper", mode, scopes: [scope], top_k: 12 });
    expect(used).toBe(mode);
    const scores = results.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((left, right) => right - left));
    expect(results).toHaveLength(12);
  });

  test("without results is empty", async () => {
    for (const mode of MODES) {
      expect(await search({ query: "anything", mode, scopes: ["nobody/here"] })).toEqual([]);
    }
  });
});

describe("top_k", () => {
  beforeAll(async () => {
    for (let at = 0; at < 115; at++) await write("crowd", sentence(at, "member"));
  });

  test.each([1, 2, 10, 99, 100])("of %i returns that many, whatever the mode", async (top_k) => {
    for (const mode of MODES) {
      const found = idsOf(await search({ query: "member", mode, scopes: ["crowd"], top_k }));
      expect([found.length, new Set(found).size]).toEqual([top_k, top_k]);
    }
  });

  test("is ten by default", async () => {
    expect(await search({ query: "member", scopes: ["crowd"] })).toHaveLength(10);
  });

  test("a smaller one returns the beginning of a larger one", async () => {
    for (const mode of MODES) {
      const many = idsOf(await search({ query: "member t5x5 t7x7", mode, scopes: ["crowd"], top_k: 60 }));
      const few = idsOf(await search({ query: "member t5x5 t7x7", mode, scopes: ["crowd"], top_k: 5 }));
      expect(few).toEqual(many.slice(0, 5));
    }
  });
});

describe("a filter", () => {
  const scope = "filtered";
  const byMetadata = new Map<string, object>();
  beforeAll(async () => {
    for (let at = 0; at < 130; at++) {
      const metadata = {
        team: at % 2 === 0 ? "red" : "blue",
        year: 2020 + (at % 3),
        public: at % 5 === 0,
        text: `${2020 + (at % 3)}`,
        ...(at === 77 ? { rare: "yes", constructor: "own" } : {}),
      };
      byMetadata.set(
        await write(scope, sentence(at, at === 77 ? "unlike" : "common"), { metadata }),
        metadata,
      );
    }
  }, 30_000);

  test.each<[string, Record<string, unknown>]>([
    ["text", { team: "red" }],
    ["a number", { year: 2021 }],
    ["a number in another notation", { year: 2.021e3 }],
    ["true", { public: true }],
    ["false", { public: false, year: 2020 }],
    ["two keys", { team: "blue", year: 2022 }],
    ["three keys", { team: "red", year: 2020, public: true }],
    ["a number as text", { text: "2021" }],
    ["a value that one document has", { rare: "yes" }],
    ["a key that every object has", { constructor: "own" }],
  ])("by %s finds exactly the documents that have it", async (_, filter) => {
    const expected = [...byMetadata].filter(([, metadata]) =>
      Object.entries(filter).every(([name, value]) => (metadata as Record<string, unknown>)[name] === value),
    );
    expect(expected.length).toBeGreaterThan(0);
    for (const mode of MODES) {
      const found = idsOf(
        await search({ query: "common unlike", mode, scopes: [scope], filter, top_k: 100 }),
      );
      expect(found.toSorted()).toEqual(expected.map(([id]) => id).toSorted());
    }
  });

  test.each<[string, Record<string, unknown>]>([
    ["a value that no document has", { team: "green" }],
    ["a key that no document has", { colour: "red" }],
    ["a number for its text", { text: 2021 }],
    ["text for its number", { year: "2021" }],
    ["text for true", { public: "true" }],
    ["two values that no document has together", { rare: "yes", team: "red" }],
    ["another case", { team: "Red" }],
    ["SQL", { team: "red' OR '1'='1" }],
    ["SQL's wildcard", { team: "r%" }],
    ["a key with an SQL wildcard", { te_m: "red" }],
    ["a prototype", { toString: "red" }],
  ])("by %s finds nothing", async (_, filter) => {
    for (const mode of MODES) {
      expect(await search({ query: "common unlike", mode, scopes: [scope], filter })).toEqual([]);
    }
  });

  test("finds a rare value with vectors only, however unlike the question it is", async () => {
    const [found, ...more] = await search({
      query: "common",
      mode: "vector",
      scopes: [scope],
      filter: { rare: "yes" },
    });
    expect([found?.metadata, more]).toEqual([expect.objectContaining({ rare: "yes" }), []]);
  });

  test("never reaches beyond the boundary", async () => {
    await write("elsewhere", "common and rare", { metadata: { rare: "yes" } });
    for (const mode of MODES) {
      const found = await search({ query: "common unlike", mode, scopes: [scope], filter: { rare: "yes" } });
      expect(found.map((each) => each.scope)).toEqual([scope]);
    }
  });

  test("that is empty filters nothing", async () => {
    expect(await search({ query: "common", scopes: [scope], filter: {}, top_k: 20 })).toHaveLength(20);
  });
});

describe("folding", () => {
  const same =
    "The refund of a parcel that was lost on its way is paid within fourteen days of the complaint.";

  test("a text in two documents is returned once, and the other document is named", async () => {
    const first = await write("folded", same);
    const second = await write("folded", same);
    const third = await write(
      "folded",
      "Parcels are insured. Nothing else is promised to anybody by this note.",
    );
    for (const mode of MODES) {
      const results = await search({ query: "refund of a parcel", mode, scopes: ["folded"], explain: true });
      const shown = results.filter(({ text }) => text === same);
      expect(shown.map(({ document_id }) => document_id)).toEqual([first]);
      const alone = await search({ query: "refund", scopes: ["folded"], filter: {}, top_k: 100 });
      expect(idsOf(alone).filter((id) => id === second)).toEqual([]);
      const [duplicate, ...more] = shown[0]?.explain?.duplicates ?? [];
      expect(duplicate).toMatch(/^chk_/);
      expect(more).toEqual([]);
      expect(duplicate).not.toBe(shown[0]?.chunk_id);
      expect(idsOf(results)).toContain(third);
    }
    await gateway.call("DELETE", `/v1/vault/documents/${first}`);
    expect(idsOf(await search({ query: "refund", scopes: ["folded"], top_k: 1 }))).toEqual([second]);
  });

  test("a duplicate outside the boundary is not named", async () => {
    await write("twin/a", same);
    await write("twin/b", same);
    const [inside] = await search({ query: "refund", scopes: ["twin/a"], explain: true });
    expect(inside?.explain?.duplicates).toEqual([]);
    const both = await search({ query: "refund", scopes: ["twin"], explain: true });
    expect(both.map(({ explain }) => explain?.duplicates.length)).toEqual([1]);
  });

  test("short texts with different contents are all shown", async () => {
    for (let at = 100; at < 160; at++) {
      await write(
        "facts",
        `Contract number ${at}: the term ends on day ${at % 28} of March, and the fee is ${at * 37} euros.`,
      );
    }
    expect(await search({ query: "contract fee", scopes: ["facts"], top_k: 100 })).toHaveLength(60);
  });

  test("one document does not crowd out others, but shows more if there is nothing else", async () => {
    const long = Array.from({ length: 12 }, (_, at) => sentence(at, "volcano ".repeat(5)).repeat(6)).join(
      "\n\n",
    );
    const crowding = await write("crowded", long, { title: "All about volcanoes" });
    const others: string[] = [];
    for (let at = 50; at < 56; at++)
      others.push(await write("crowded", sentence(at, "A volcano and other things.")));
    for (const mode of MODES) {
      const found = idsOf(await search({ query: "volcano", mode, scopes: ["crowded"], top_k: 8 }));
      expect(found).toHaveLength(8);
      expect(found.filter((id) => id === crowding).length).toBeLessThanOrEqual(3);
      expect(others.every((id) => found.includes(id))).toBe(true);
    }
    const alone = await search({ query: "volcano", scopes: ["crowded"], top_k: 5, filter: {} });
    expect(alone).toHaveLength(5);
    for (const id of others) await gateway.call("DELETE", `/v1/vault/documents/${id}`);
    const left = idsOf(await search({ query: "volcano", scopes: ["crowded"], top_k: 8 }));
    expect(left.length).toBeGreaterThan(3);
    expect(new Set(left)).toEqual(new Set([crowding]));
  });
});

describe("recency", () => {
  test("puts the newer of equal matches first, and halves with each half-life", async () => {
    const ids: string[] = [];
    for (const at of [1, 2, 3]) {
      ids.push(await write("aged", sentence(at, "price list shop")));
      clock.setWall(clock.now() + 10 * 86_400_000);
    }
    for (const mode of MODES) {
      const body = { query: "price list shop", mode, scopes: ["aged"], explain: true };
      const plain = await search(body);
      const aged = await search({ ...body, recency: { half_life: "10d" } });
      expect(idsOf(aged)).toEqual(ids.toReversed());
      for (const [index, { score, explain, document_id }] of aged.entries()) {
        expect(explain?.recency).toBeCloseTo(0.5 ** (index + 1), 12);
        const fresh = plain.find((each) => each.document_id === document_id)?.score ?? 0;
        expect(score).toBeCloseTo(fresh * 0.5 ** (index + 1), 12);
      }
      expect(plain.every(({ explain }) => explain?.recency === null)).toBe(true);
    }
    // A rewritten document counts as new.
    const body = { id: ids[0], title: "A note", text: sentence(1, "price list shop"), scope: "aged" };
    expect((await gateway.call("POST", "/v1/vault/documents", { body })).status).toBe(200);
    const found = idsOf(
      await search({ query: "price list shop", scopes: ["aged"], recency: { half_life: "10d" } }),
    );
    expect(found[0]).toBe(ids[0]);
  });
});

describe("max_chars", () => {
  beforeAll(async () => {
    for (let at = 0; at < 6; at++) await write("budget", sentence(at, "coin"));
  });

  test("limits all passages together; they are complete", async () => {
    const whole = await search({ query: "coin", scopes: ["budget"] });
    const lengths = whole.map(({ text }) => text.length);
    for (const max_chars of [lengths[0] ?? 0, 300, 500, 1_000, 100_000]) {
      const found = await search({ query: "coin", scopes: ["budget"], max_chars });
      const total = found.reduce((sum, { text }) => sum + text.length, 0);
      expect(total).toBeLessThanOrEqual(max_chars);
      expect(found.map(({ text }) => text)).toEqual(whole.slice(0, found.length).map(({ text }) => text));
      expect(found.length).toBeGreaterThan(0);
    }
  });

  test("cuts the first passage if that passage alone is too long, and reports where", async () => {
    for (const max_chars of [5, 20, 60]) {
      const [found, ...more] = await search({ query: "coin", scopes: ["budget"], max_chars });
      expect(more).toEqual([]);
      expect(found?.text.length).toBeGreaterThan(0);
      expect(found?.text.length).toBeLessThanOrEqual(max_chars);
      const { text } = (await gateway.call("GET", `/v1/vault/documents/${found?.document_id}`)).body;
      expect(text.slice(found?.start, found?.end)).toBe(found?.text);
    }
  });
});

describe("typing errors", () => {
  test("an unknown word counts as the nearest known one, and explain says so", async () => {
    const id = await write("typed", "The warranty covers the hinges of the cabinet.");
    for (const query of ["waranty", "warrenty", "warrantyy", "awrranty"]) {
      const answer = await ask({ query, mode: "keyword", scopes: ["typed"], explain: true });
      expect(idsOf(answer.results)).toEqual([id]);
      expect(Object.keys((answer.explain as { corrected: object }).corrected)).toEqual([query]);
    }
    const known = await ask({ query: "warranty", mode: "keyword", scopes: ["typed"], explain: true });
    expect(known.explain).toEqual({ corrected: {} });
  });

  test("a stop word is never the correction", async () => {
    await write("typed/stops", "It is now or not at all with them.", { title: "Untitled" });
    for (const query of ["nothing", "notd", "thenm"]) {
      expect(await search({ query, mode: "keyword", scopes: ["typed/stops"] })).toEqual([]);
    }
  });
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { MODES, search as searchIn } from "../support/vault.ts";

const clock = new FakeClock();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ clock });
});
afterAll(() => gateway.stop());

const write = (body: object) =>
  gateway.call("POST", "/v1/vault/documents", { body: { title: "A note", scope: "notes", ...body } });
const read = (id: string) => gateway.call("GET", `/v1/vault/documents/${id}`);
const search = async (body: object) => (await searchIn(gateway, body)).results;

const DOCUMENT_ID = /^doc_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

describe("writing", () => {
  test("returns the document as later reads do, without its text", async () => {
    const { status, headers, body } = await write({
      text: "Refunds are paid.",
      source_uri: "https://example.test/refunds",
      metadata: { year: 2026, public: true, team: "support" },
    });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(DOCUMENT_ID),
      title: "A note",
      scope: "notes",
      source_uri: "https://example.test/refunds",
      metadata: { year: 2026, public: true, team: "support" },
      content_type: "text/plain",
      content_hash: new Bun.CryptoHasher("sha256").update("Refunds are paid.").digest("hex"),
      characters: 17,
      chunks: 1,
      vectors: "ready",
      created_by: expect.stringMatching(/^token:tok_/),
      created_at: new Date(clock.now()).toISOString(),
      updated_at: new Date(clock.now()).toISOString(),
    });
    expect(headers.get("location")).toBe(`/v1/vault/documents/${body.id}`);
    expect((await read(body.id)).body).toEqual({ ...body, text: "Refunds are paid." });
  });

  test("with the same id replaces it: 200, created_at stays, old words are gone, new words are found", async () => {
    const scope = "replaced";
    const first = await write({ text: "An armadillo sleeps.", title: "Burrow", scope, metadata: { v: 1 } });
    const { id, created_at, created_by } = first.body;
    clock.advance(60_000);
    const token = await gateway.token({ scopes: ["vault:write"] });
    const body = { id, title: "Savanna", text: "A wildebeest runs.", scope, metadata: { v: 2 } };
    const again = await gateway.call("POST", "/v1/vault/documents", { token, body });
    expect([again.status, again.body.id]).toEqual([200, id]);
    expect(again.body).toMatchObject({
      created_at,
      created_by,
      updated_at: new Date(clock.now()).toISOString(),
    });
    expect(again.body.updated_at).not.toBe(created_at);
    for (const query of ["armadillo", "burrow", "sleeps"]) {
      expect(await search({ query, mode: "keyword", scopes: [scope] })).toEqual([]);
    }
    for (const query of ["wildebeest", "savanna"]) {
      const found = await search({ query, mode: "keyword", scopes: [scope] });
      expect(found.map(({ document_id, title }) => [document_id, title])).toEqual([[id, "Savanna"]]);
    }
    for (const mode of MODES) {
      const texts = (await search({ query: "armadillo", mode, scopes: [scope] })).map(({ text }) => text);
      expect(texts.filter((text) => text !== "A wildebeest runs.")).toEqual([]);
    }
    expect(await search({ query: "runs", filter: { v: 1 }, scopes: [scope] })).toEqual([]);
    expect(await search({ query: "runs", filter: { v: 2 }, scopes: [scope] })).toHaveLength(1);
    expect((await read(id)).body.text).toBe("A wildebeest runs.");
  });

  test("a replaced document may move: its former scope no longer finds it", async () => {
    const { id } = (await write({ text: "A pangolin curls up.", scope: "from" })).body;
    expect((await write({ id, text: "A pangolin curls up.", scope: "to" })).status).toBe(200);
    for (const mode of MODES) {
      expect(await search({ query: "pangolin", mode, scopes: ["from"] })).toEqual([]);
      expect((await search({ query: "pangolin", mode, scopes: ["to"] }))[0]?.document_id).toBe(id);
    }
    const list = async (scope: string) =>
      (await gateway.call("GET", `/v1/vault/documents?scope=${scope}`)).body.data.length;
    expect([await list("from"), await list("to")]).toEqual([0, 1]);
  });

  test("many simultaneous writers of one id: one complete document remains, and one writer created it", async () => {
    const id = "doc_01arz3ndektsv4rrffq69g5fa0";
    const words = ["alder", "beech", "cedar", "dogwood", "elm", "fir"];
    const answers = await Promise.all(
      words.map((word) => write({ id, text: `${word} tree`, scope: "race" })),
    );
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, 200, 200, 200, 200, 201]);
    const { text } = (await read(id)).body;
    for (const word of words) {
      const found = await search({ query: word, mode: "keyword", scopes: ["race"] });
      expect(found.map((each) => each.text)).toEqual(text === `${word} tree` ? [text] : []);
    }
    expect(
      (await search({ query: "tree", mode: "vector", scopes: ["race"] })).map((each) => each.text),
    ).toEqual([text]);
  });

  test("a search during a replacement sees one version of it", async () => {
    const id = "doc_01arz3ndektsv4rrffq69g5fa1";
    // Long enough to be written in several slices.
    const version = (number: number) =>
      Array.from({ length: 3_000 }, (_, at) => `gecko v${number}q${at}`).join(" ");
    await write({ id, text: version(0), scope: "versions" });
    let isDone = false;
    const writing = (async () => {
      for (let number = 1; number <= 6; number++)
        await write({ id, text: version(number), scope: "versions" });
      isDone = true;
    })();
    do {
      for (const mode of MODES) {
        const found = await search({ query: "gecko", mode, scopes: ["versions"], top_k: 50 });
        const versions = found.flatMap(({ text }) => text.match(/\bv\d+(?=q)/g) ?? []);
        expect(new Set(versions).size).toBe(1);
      }
    } while (!isDone);
    await writing;
  }, 30_000);

  test("an unreadable document leaves the existing one with its id unchanged", async () => {
    const { body } = await write({ text: "It stays." });
    const before = (await read(body.id)).body;
    const bad = { id: body.id, text: undefined, content_type: "application/pdf", content_base64: "aGVsbG8=" };
    expect((await write(bad)).status).toBe(422);
    expect((await read(body.id)).body).toEqual(before);
    const found = await search({ query: "stays", mode: "keyword" });
    expect(found.map(({ document_id }) => document_id)).toEqual([body.id]);
  });
});

describe("deleting", () => {
  test("removes it from reads, lists, searches and filters; its id may be used again", async () => {
    const scope = "deleted";
    const { body } = await write({ text: "An okapi hides.", scope, metadata: { okapi: true } });
    expect((await gateway.call("DELETE", `/v1/vault/documents/${body.id}`)).status).toBe(204);
    expect((await read(body.id)).body.code).toBe("not_found");
    const list = await gateway.call("GET", `/v1/vault/documents?scope=${scope}`);
    expect(list.body).toEqual({ data: [], next_cursor: null });
    for (const mode of MODES) {
      expect(await search({ query: "okapi", mode, scopes: [scope] })).toEqual([]);
      expect(await search({ query: "okapi", mode, filter: { okapi: true } })).toEqual([]);
    }
    const again = await gateway.call("DELETE", `/v1/vault/documents/${body.id}`);
    expect([again.status, again.body.code]).toEqual([404, "not_found"]);
    expect((await write({ id: body.id, text: "Another one.", scope })).status).toBe(201);
  });

  test("of many documents removes those, and no others", async () => {
    const scope = "mowed";
    const ids: string[] = [];
    for (let at = 0; at < 20; at++)
      ids.push((await write({ text: `Blade number ${at} of grass.`, scope })).body.id);
    const gone = ids.filter((_, at) => at % 3 !== 1);
    const answers = await Promise.all(gone.map((id) => gateway.call("DELETE", `/v1/vault/documents/${id}`)));
    expect(answers.every(({ status }) => status === 204)).toBe(true);
    for (const mode of MODES) {
      const found = await search({ query: "blade of grass", mode, scopes: [scope], top_k: 50 });
      expect(found.map(({ document_id }) => document_id).toSorted()).toEqual(
        ids.filter((id) => !gone.includes(id)).toSorted(),
      );
    }
  });
});

/** Characters of one, two and three code units that form one grapheme, and others. */
const PIECES = [
  "word ",
  "Sentence. ",
  "\n\n",
  "退款在十四天内支付。",
  "😀",
  "👩‍👩‍👧‍👦",
  "e\u0301",
  "🇨🇭",
  "\t",
  "x",
  "ﷺ",
  "กิน",
];

describe("start and end", () => {
  async function expectExact(text: string, title: string): Promise<void> {
    const written = await write({ text, title, scope: "exact" });
    expect(written.status).toBe(201);
    const stored = (await read(written.body.id)).body;
    expect(stored.text).toBe(text);
    expect(stored.characters).toBe(text.length);
    for (const mode of MODES) {
      const found = await search({ query: `needle ${title}`, mode, scopes: ["exact"], top_k: 100 });
      const own = found.filter(({ document_id }) => document_id === written.body.id);
      expect(own.length).toBeGreaterThan(0);
      for (const each of own) {
        expect(text.slice(each.start, each.end)).toBe(each.text);
        expect(each.text.isWellFormed()).toBe(true);
        expect(each.text.trim()).not.toBe("");
      }
    }
    await gateway.call("DELETE", `/v1/vault/documents/${written.body.id}`);
  }

  test("are exact for texts of any characters, across page boundaries", async () => {
    const text = fc
      .tuple(
        fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 900 }),
        fc.array(fc.constantFrom(...PIECES), { maxLength: 10 }),
      )
      .map(
        ([pieces, times, tail]) => `needle ${pieces.join("").repeat(times).slice(0, 30_000)}${tail.join("")}`,
      )
      .map((made) => made.toWellFormed());
    await fc.assert(
      fc.asyncProperty(text, (made) => expectExact(made, "haystack")),
      { numRuns: 25 },
    );
  }, 60_000);

  test.each([0, 1])("are exact if a surrogate pair crosses a page boundary (%i)", async (shift) => {
    // 8,192 code units per page: the emoji begin at even or odd positions.
    await expectExact(`${"n".repeat(shift)}${"😀".repeat(9_000)} needle ${"😀".repeat(400)}`, "pairs");
  });

  test("are exact in every passage of a long document", async () => {
    const paragraphs = Array.from({ length: 400 }, (_, at) =>
      `Paragraph ${at} 😀 退款 café holds pin${at}. `.repeat(4),
    );
    const text = paragraphs.join("\n\n");
    const { body } = await write({ text, scope: "long" });
    expect(text.length).toBeGreaterThan(8_192 * 6);
    expect(body.chunks).toBeGreaterThan(20);
    for (let at = 0; at < 400; at += 37) {
      const [best] = await search({ query: `pin${at}`, mode: "keyword", scopes: ["long"] });
      expect(best?.text).toContain(`pin${at}.`);
      expect(text.slice(best?.start, best?.end)).toBe(best?.text as string);
    }
  });
});

test("every type of document is read, found, and returned with its text", async () => {
  for (const [content_type, text, word] of [
    ["text/markdown", "# Heading\n\nA *lemur* leaps.", "lemur"],
    ["text/html", "<h1>Heading</h1><p>A <b>gibbon</b> swings.</p><script>hidden()</script>", "gibbon"],
    ["text/csv", "animal,does\ntapir,swims\n", "tapir"],
    ["application/json", '{"animal":"numbat","does":"digs"}', "numbat"],
  ] as const) {
    const { status, body } = await write({ content_type, text, scope: "types" });
    expect([status, body.content_type]).toEqual([201, content_type]);
    const stored = (await read(body.id)).body.text;
    const [found] = await search({ query: word, scopes: ["types"], mode: "keyword" });
    expect(found?.document_id).toBe(body.id);
    expect(stored.slice(found?.start, found?.end)).toBe(found?.text as string);
    expect(stored).not.toContain("hidden()");
  }
});

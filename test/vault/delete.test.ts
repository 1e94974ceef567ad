/** A deleted or replaced document is no longer in any file of the data directory, even while the server runs. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { termOf } from "../../src/vault/terms/words.ts";
import { vaultFaults } from "../faults/vault-support.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { longText, remove, search, write } from "../support/vault.ts";
import { until } from "../tasks/support.ts";
import { filesWith, leftovers, openFile, stretchOf, vectorsOf } from "./files-support.ts";

let clock: FakeClock;
let gateway: TestGateway;

beforeEach(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ isOnFiles: true, clock, yaml: "limits: { requests_per_minute: 1000000 }" });
});

afterEach(() => gateway.stop());

const MARKS = {
  text: "zyxomatic kerfuffle of the obnubilated quagga",
  title: "Wherewithal of Ambrosius Thunderbolt",
  source: "https://hoard.example/parchment-77213",
  metadata: "verisimilitude-of-nine",
  scope: "cellars/gossamer-vaultling",
};

function marked(extra: object = {}) {
  return {
    title: MARKS.title,
    text: `Introduction.\n\n${MARKS.text}. ${longText("plinth", 3)}`,
    source_uri: MARKS.source,
    metadata: { keeper: MARKS.metadata },
    scope: MARKS.scope,
    ...extra,
  };
}

/** The eight bytes that represent a word in the index. */
function termBytes(word: string): Uint8Array {
  return new Uint8Array(new Float64Array([termOf(word)]).buffer);
}

/** Everything that a marked document leaves in the files, by name. */
function traces(id: string): Record<string, string | Uint8Array> {
  const vectors = vectorsOf(gateway.dataDir, id).map((vector, n) => [`vector ${n}`, stretchOf(vector)]);
  expect(vectors.length).toBeGreaterThan(0);
  return {
    ...MARKS,
    "term of the text": termBytes("obnubilated"),
    "term of the title": termBytes("thunderbolt"),
    ...Object.fromEntries(vectors),
  };
}

const others = (count: number, name: string, scope = MARKS.scope) =>
  Promise.all(
    Array.from({ length: count }, (_, n) =>
      write(gateway, { title: `Other ${name} ${n}`, text: `Plain words of ${name} number ${n}.`, scope }),
    ),
  );

function countOf(sql: string): number {
  const file = openFile(gateway.dataDir);
  try {
    return file.query<{ n: number }, []>(sql).get()?.n ?? -1;
  } finally {
    file.close();
  }
}

describe("deleting", () => {
  test("removes text, title, source, metadata, scope, vectors and terms from every file", async () => {
    const { id } = await write(gateway, marked());
    await search(gateway, { query: MARKS.text });
    const needles = traces(id);
    expect(leftovers(gateway.dataDir, needles).length).toBeGreaterThanOrEqual(Object.keys(needles).length);
    await remove(gateway, id);
    expect(leftovers(gateway.dataDir, withoutScope(needles))).toEqual([]);
    expect(countOf("SELECT count(*) AS n FROM vault_scopes")).toBe(0);
  });

  test.each([8, 64])("does so after %d documents were merged into one segment with it", async (count) => {
    await others(count / 2, "before");
    const { id } = await write(gateway, marked());
    await others(count / 2 + 1, "after");
    await until(() => countOf("SELECT count(*) AS n FROM vault_segments") < count / 2);
    await search(gateway, { query: MARKS.text });
    const needles = traces(id);
    await remove(gateway, id);
    expect(leftovers(gateway.dataDir, withoutScope(needles))).toEqual([]);
    // The other documents are unchanged.
    const { results } = await search(gateway, { query: "number 3", mode: "keyword" });
    expect(results.map(({ text }) => text)).toContain("Plain words of before number 3.");
    expect((await search(gateway, { query: "obnubilated quagga", mode: "keyword" })).results).toEqual([]);
  });

  test("does so for a document of hundreds of passages", async () => {
    const { id, chunks } = await write(gateway, marked({ text: `${MARKS.text} ${longText("slab", 400)}` }));
    expect(chunks).toBeGreaterThan(256);
    const needles = { ...MARKS, middle: "slab200x30", term: termBytes("slab399x59"), ...some(traces(id)) };
    await remove(gateway, id);
    expect(leftovers(gateway.dataDir, withoutScope(needles))).toEqual([]);
    for (const table of ["vault_chunks", "vault_pages", "vault_segments", "vault_metadata", "vault_pending"])
      expect(countOf(`SELECT count(*) AS n FROM ${table}`)).toBe(0);
  });

  test("does so while others search continuously", async () => {
    await others(20, "busy");
    const { id } = await write(gateway, marked());
    const needles = traces(id);
    let isOver = false;
    const searching = Array.from({ length: 8 }, async () => {
      while (!isOver) await search(gateway, { query: "plain words of busy" });
    });
    await remove(gateway, id);
    await until(() => {
      clock.advance(2_000);
      return leftovers(gateway.dataDir, withoutScope(needles)).length === 0;
    });
    isOver = true;
    await Promise.all(searching);
  });

  test("leaves nothing in the ledger's entries about it", async () => {
    const { id } = await write(gateway, marked());
    await search(gateway, { query: MARKS.text });
    await gateway.call("GET", `/v1/vault/documents/${id}`);
    await gateway.call("GET", `/v1/vault/documents?source_uri=${encodeURIComponent(MARKS.source)}`);
    await remove(gateway, id);
    const { body } = await gateway.call("GET", "/v1/ledger?limit=200");
    const text = JSON.stringify(body);
    for (const mark of [MARKS.text, MARKS.title, MARKS.source, MARKS.metadata])
      expect(text).not.toContain(mark);
    expect(body.data.map((entry: { action: string }) => entry.action)).toContain("vault.delete");
  });

  test("keeps a scope for as long as it has a document, even one added at the same time", async () => {
    const [first, second] = await Promise.all([
      write(gateway, marked()),
      write(gateway, marked({ title: "Another" })),
    ]);
    await remove(gateway, first.id);
    expect(countOf("SELECT count(*) AS n FROM vault_scopes")).toBe(1);
    for (let round = 0; round < 10; round++) {
      const [, third] = await Promise.all([
        remove(gateway, round === 0 ? second.id : (await write(gateway, marked())).id),
        write(gateway, marked({ title: `Round ${round}`, text: longText(`round${round}`, 40) })),
      ]);
      expect(countOf("SELECT count(*) AS n FROM vault_scopes")).toBe(1);
      const { results } = await search(gateway, { query: `round${round}x1`, scopes: [MARKS.scope] });
      expect(results[0]?.document_id).toBe(third.id);
      await remove(gateway, third.id);
    }
    expect(countOf("SELECT count(*) AS n FROM vault_scopes")).toBe(0);
  });

  test("of most of a scope compacts its vectors in the background", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 40; n++) {
      ids.push((await write(gateway, { title: `Doc ${n}`, text: longText(`doc${n}`, 16) })).id);
    }
    const blocks = () => countOf("SELECT count(*) AS n FROM vault_vectors_1_chunks");
    const before = blocks();
    const kept = ids.filter((_, n) => n % 5 === 0);
    for (const id of ids) if (!kept.includes(id)) await remove(gateway, id);
    const left = () => countOf("SELECT count(*) AS n FROM vault_chunks");
    // The vault checks after every 64 removed passages, so the last check may have missed that many.
    await until(() => blocks() * 64 <= 2 * (left() + 64) + 64);
    expect(blocks()).toBeLessThan(before / 2);
    for (const id of kept) {
      const { results } = await search(gateway, { query: `doc${ids.indexOf(id)}x3`, mode: "vector" });
      expect(results.length).toBeGreaterThan(0);
    }
    expect(vaultFaults(databasePath(gateway.dataDir))).toEqual([]);
  });

  test("is retried if the store failed midway, and otherwise done by the next start", async () => {
    const { id } = await write(gateway, marked());
    const needles = traces(id);
    const file = writable();
    file.run("CREATE TRIGGER full BEFORE DELETE ON vault_pages BEGIN SELECT RAISE(ABORT, 'full'); END");
    await remove(gateway, id);
    expect((await gateway.call("GET", `/v1/vault/documents/${id}`)).status).toBe(404);
    expect((await search(gateway, { query: MARKS.text })).results).toEqual([]);
    expect(filesWith(gateway.dataDir, MARKS.text)).not.toEqual([]);
    file.run("DROP TRIGGER full");
    await until(() => {
      clock.advance(5_000);
      return leftovers(gateway.dataDir, withoutScope(needles)).length === 0;
    });
  });
});

describe("replacing", () => {
  test("removes the old text, vectors and terms from every file soon afterwards", async () => {
    const { id } = await write(gateway, marked());
    await search(gateway, { query: MARKS.text });
    const needles = traces(id);
    await write(gateway, { id, title: "New", text: "Quite something else.", scope: "elsewhere" });
    await until(() => {
      clock.advance(2_000);
      return leftovers(gateway.dataDir, withoutScope(needles)).length === 0;
    });
    expect((await gateway.call("GET", `/v1/vault/documents/${id}`)).body.text).toBe("Quite something else.");
  });

  test("by many at once leaves one complete document, and no trace of the others", async () => {
    const { id } = await write(gateway, { title: "First", text: "first" });
    const texts = Array.from({ length: 24 }, (_, n) => longText(`racer${n}`, n % 3 === 0 ? 60 : 2));
    const answers = await Promise.all(
      texts.map((text, n) =>
        gateway.call("POST", "/v1/vault/documents", { body: { id, title: `T${n}`, text, scope: "support" } }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(24).fill(200));
    const { text } = (await gateway.call("GET", `/v1/vault/documents/${id}`)).body;
    const winner = texts.indexOf(text);
    expect(winner).toBeGreaterThanOrEqual(0);
    await until(() => {
      clock.advance(2_000);
      return texts.every(
        (each, n) => n === winner || filesWith(gateway.dataDir, each.slice(0, 60)).length === 0,
      );
    });
    expect(countOf("SELECT count(*) AS n FROM vault_documents")).toBe(1);
  });

  test("never harms the new document if the old one cannot be removed", async () => {
    const { id } = await write(gateway, { title: "Old", text: longText("old", 60) });
    const file = writable();
    file.run("CREATE TRIGGER full BEFORE DELETE ON vault_pages BEGIN SELECT RAISE(ABORT, 'full'); END");
    const text = longText("fresh", 60);
    const answer = await gateway.call("POST", "/v1/vault/documents", {
      body: { id, title: "New", text, scope: "support" },
    });
    expect(answer.status).toBe(200);
    file.run("DROP TRIGGER full");
    expect((await gateway.call("GET", `/v1/vault/documents/${id}`)).body.text).toBe(text);
    expect((await search(gateway, { query: "fresh30x5" })).results[0]?.document_id).toBe(id);
  });
});

/** The ledger records where a document was written: a scope is an address, not part of the document. */
function withoutScope(needles: Record<string, string | Uint8Array>): Record<string, string | Uint8Array> {
  const { scope: _, ...rest } = needles;
  return rest;
}

function some(needles: Record<string, string | Uint8Array>): Record<string, string | Uint8Array> {
  return Object.fromEntries(Object.entries(needles).filter((_, index) => index % 40 === 0));
}

function writable(): Database {
  return ownConnection(gateway.dataDir);
}

/**
 * The index entries of deleted documents are removed with them, even from pages that were split and merged many
 * times.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { idsOf, MODES, remove, search, write } from "../support/vault.ts";
import { until } from "../tasks/support.ts";
import { openFile } from "./files-support.ts";

const DOCUMENTS = 1_500;
const DELETED = 1_100;
const AT_ONCE = 24;
const SCOPES = ["support", "support/north", "sales", "legal/a/b"];
/** What is marked, each with one letter: text, title, uri, and the name and value of metadata. */
const KINDS = ["t", "h", "u", "n", "v"];
const INDEXED = ["h", "u", "n", "v"];

/** Repeats a mark so often that any few bytes of the text reveal which document they came from. */
const mark = (kind: string, n: number, times = 1) => `~${kind}${String(n).padStart(4, "0")}~`.repeat(times);
/** A varying length, so that the cells of a page vary too. */
const spread = (n: number, most: number) => 1 + ((n * 7_919) % most);

function documentOf(n: number) {
  return {
    title: mark("h", n, spread(n, 9)),
    text: `Words of ${mark("t", n, spread(n + 1, 12))} and no others.`,
    scope: SCOPES[n % SCOPES.length],
    source_uri: `https://${mark("u", n, spread(n + 2, 40))}`,
    metadata: { [mark("n", n, spread(n + 3, 9))]: mark("v", n, spread(n + 4, 60)), lot: n % 7 },
  };
}

/** The distinct marks in all files of the directory. */
function marksIn(directory: string): Set<string> {
  const found = new Set<string>();
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const path = join(directory, name);
    if (!statSync(path).isFile()) continue;
    for (const [each] of readFileSync(path, "latin1").matchAll(/~[thunv]\d{4}~/g)) found.add(each);
  }
  return found;
}

/** Runs the work for all items, a few at a time. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const one = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

describe("after deleting 1,100 of 1,500 documents", () => {
  let gateway: TestGateway;
  const clock = new FakeClock();
  const ids = new Map<number, string>();
  const numbers = Array.from({ length: DOCUMENTS }, (_, n) => n);
  // 577 and 1,500 have no common divisor, so each number occurs once, far from the one before.
  const order = numbers.map((n) => (n * 577) % DOCUMENTS);
  const marks = (chosen: readonly number[], kinds: readonly string[]) =>
    new Set(chosen.flatMap((n) => kinds.map((kind) => mark(kind, n))));
  let written: ReadonlySet<string>;
  let held: ReadonlySet<string>;

  beforeAll(async () => {
    const yaml = "limits: { requests_per_minute: 1000000 }";
    gateway = await startGateway({ isOnFiles: true, clock, yaml });
    await each(numbers, async (n) => void ids.set(n, (await write(gateway, documentOf(n))).id));
    written = marksIn(gateway.dataDir);
    await each(order.slice(0, DELETED), (n) => remove(gateway, ids.get(n) ?? ""));
    held = marksIn(gateway.dataDir);
  }, 120_000);
  afterAll(() => gateway.stop());

  test("all marks had been in the files", () => {
    expect([...marks(numbers, KINDS).difference(written)]).toEqual([]);
    expect(written.size).toBe(DOCUMENTS * KINDS.length);
  });

  test("the other documents' marks still exist, and find them", async () => {
    const kept = order.slice(DELETED);
    expect([...marks(kept, KINDS).difference(held)]).toEqual([]);
    const n = kept.at(-1) ?? 0;
    const { results } = await search(gateway, { query: "words", filter: documentOf(n).metadata });
    expect(idsOf(results)).toEqual([ids.get(n) ?? ""]);
  });

  test("no title, source or metadata is left in any file", () => {
    const gone = marks(order.slice(0, DELETED), INDEXED);
    expect([...held.intersection(gone)]).toEqual([]);
  });

  test("no text is left once the store is rewritten, and the others are found as before", async () => {
    const gone = marks(order.slice(0, DELETED), KINDS);
    // The engine had copied some of it while moving rows.
    await until(() => {
      clock.advance(5_000);
      return marksIn(gateway.dataDir).isDisjointFrom(gone);
    });
    const kept = order.slice(DELETED);
    expect([...marks(kept, KINDS).difference(marksIn(gateway.dataDir))]).toEqual([]);
    for (const mode of MODES) {
      const { results } = await search(gateway, { query: `Words of ${mark("t", kept[0] ?? 0)}`, mode });
      expect(results.length).toBeGreaterThan(0);
    }
  });
});

test("no index contains a document's text", async () => {
  const gateway = await startGateway({ isOnFiles: true });
  try {
    await write(gateway, documentOf(1));
    const file = openFile(gateway.dataDir);
    const indexed = file
      .query<{ name: string }, []>(
        `SELECT DISTINCT m.name || '.' || c.name AS name
         FROM sqlite_schema AS m JOIN pragma_index_list(m.name) AS i JOIN pragma_index_info(i.name) AS c
           JOIN pragma_table_info(m.name) AS t ON t.name = c.name
         WHERE m.type = 'table' AND m.name LIKE 'vault%' AND m.name NOT LIKE 'vault_vectors%' AND t.type = 'TEXT' ORDER BY 1`,
      )
      .all();
    file.close();
    expect(indexed.map(({ name }) => name)).toEqual([
      "vault_documents.id",
      "vault_documents.state",
      "vault_scopes.path",
      "vault_spaces.name",
    ]);
  } finally {
    await gateway.stop();
  }
});

/** A boundary is looked up rather than filtered: nothing outside it is read, so timing reveals nothing about it. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { getLoadablePath } from "sqlite-vec";
import type { Sql } from "../../src/store/db.ts";
import { databasePath } from "../../src/store/directory.ts";
import { SqliteIndex } from "../../src/vault/index-sqlite.ts";
import { listDocuments } from "../../src/vault/rows/documents.ts";
import { listScopes } from "../../src/vault/rows/scopes.ts";
import { loadReach } from "../../src/vault/search/reach.ts";
import { SegmentCache } from "../../src/vault/segments/segment-cache.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { write } from "../support/vault.ts";
import { openFile } from "./files-support.ts";

const SCOPES = ["/", "support", "support/north", "supportx", "sales", "legal/a"];
const SOURCE = new Uint8Array(16).fill(7);
/** As many numbers as a vector of `builtin/lexical` has. */
const VECTOR = new Float32Array(256).fill(1);

let gateway: TestGateway;
let file: Database;
let last: string;

beforeAll(async () => {
  gateway = await startGateway({ isOnFiles: true });
  for (const scope of SCOPES) {
    last = (await write(gateway, { scope, text: `Text of ${scope}.`, metadata: { lot: 1 } })).id;
  }
  file = openFile(gateway.dataDir);
});
afterAll(async () => {
  file.close();
  await gateway.stop();
});

/** The steps of a statement's query plan that read something, or that match `and`. */
function stepsOf(sql: string, and = /^SEARCH\b/): string[] {
  const plan = file.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql.replace(/\$(\d+)/g, "?$1")}`);
  return plan
    .all()
    .flatMap(({ detail }) => (/^(SEARCH|SCAN)\b/.test(detail) || and.test(detail) ? [detail] : []));
}

type Filter = "source" | "before";

/** The steps of the statements that `ask` sends to the store. */
async function askedSteps(ask: (sql: Sql) => Promise<unknown>, and?: RegExp): Promise<string[]> {
  const statements: string[] = [];
  const recorder = {
    async all(sql: string) {
      statements.push(sql);
      return [];
    },
  } as unknown as Sql;
  await ask(recorder);
  return statements.flatMap((sql) => stepsOf(sql, and));
}

/** The steps of a list's statement. */
function listSteps(boundary: readonly string[], filters: readonly Filter[] = []): Promise<string[]> {
  const source = filters.includes("source") ? SOURCE : undefined;
  const before = filters.includes("before") ? last : undefined;
  return askedSteps((sql) => listDocuments(sql, 1, 1, boundary, { source }, 10, before));
}

/**
 * The steps of a list of scopes. Sorting counts as a step, because it would read everything before returning a part.
 */
const scopeSteps = (boundary: readonly string[], after?: string) =>
  askedSteps((sql) => listScopes(sql, 1, boundary, 10, after), /TEMP B-TREE/);

/** The steps of all statements by which a search reads. */
async function searchSteps(boundary: readonly string[]): Promise<string[]> {
  const statements: string[] = [];
  const original = Database.prototype.query;
  const spy = spyOn(Database.prototype, "query").mockImplementation(function (this: Database, sql: string) {
    statements.push(sql);
    return original.call(this, sql);
  } as typeof original);
  const index = new SqliteIndex(databasePath(gateway.dataDir), getLoadablePath());
  const question = { space: 1, vector: VECTOR };
  try {
    await index.read(async (state) => {
      const { scopes, segments } = await loadReach(state, new SegmentCache(), { workspaceId: 1, boundary });
      const keys = segments.flatMap((segment) => Array.from(segment.keys));
      expect(keys.length).toBeGreaterThan(0);
      await state.documentsWith(scopes, [SOURCE]);
      expect((await state.updatedAt(keys)).size).toBe(keys.length);
      const passages = await state.passages(keys);
      expect(passages.size).toBe(keys.length);
      expect([...passages.values()].every(({ scope, text }) => text === `Text of ${scope}.`)).toBe(true);
      expect((await state.similarities(question, keys)).size).toBe(keys.length);
      expect((await state.nearest(question, scopes, 10, () => true)).length).toBe(keys.length);
    });
  } finally {
    spy.mockRestore();
    await index.close();
  }
  return [...new Set(statements)].flatMap((sql) => stepsOf(sql));
}

/** Permitted steps: scopes by their whole path or a range of paths; documents and segments only within a scope. */
const ALLOWED = [
  /^SEARCH (s|vault_scopes) .*\(workspace_id=\? AND path(=\?|>\? AND path<\?)\)$/,
  /^SEARCH d USING INDEX vault_documents_by_(scope \(scope_id=\? AND state=\?|source \(scope_id=\? AND source_hash=\?)/,
  /^SEARCH d USING COVERING INDEX vault_documents_sizes \(scope_id=\?\)$/,
  /^SEARCH g .*vault_segments_by_scope \(scope_id=\? AND live=\?\)$/,
  /^SEARCH m USING PRIMARY KEY \(scope_id=\? AND hash=\?\)$/,
  /^SEARCH p USING PRIMARY KEY \(space_id=\? AND chunk_key>\? AND chunk_key<\?\)$/,
  /^SEARCH \w+ USING INTEGER PRIMARY KEY \(rowid=\?\)$/,
  /^SEARCH vault_pages USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)$/,
  // Lists of keys given to the statement; and sqlite-vec, by a key (2) or in the partitions of given scopes (3).
  /^SCAN (s|wanted|json_each) VIRTUAL TABLE INDEX 1:$/,
  /^SCAN v VIRTUAL TABLE INDEX 5:2/,
  /^SCAN vault_vectors_1 VIRTUAL TABLE INDEX 0:3.*\]A/,
];
const forbidden = (steps: readonly string[]) =>
  steps.filter((step) => !ALLOWED.some((form) => form.test(step)));
const WALK = "SEARCH s USING COVERING INDEX vault_scopes_by_path (workspace_id=?)";

const BOUNDARIES = [["support"], ["support/north", "legal", "sales"]];

describe.each(BOUNDARIES)("inside %s", (...boundary) => {
  test("a search looks up scopes by their paths, and everything else by them", async () => {
    const steps = await searchSteps(boundary);
    expect(forbidden(steps)).toEqual([]);
    expect(steps.filter((step) => step.includes("AND path=?"))).toHaveLength(1);
    expect(steps.filter((step) => step.includes("AND path>? AND path<?"))).toHaveLength(1);
  });

  const listed = async (filters: readonly Filter[]) => {
    const steps = await listSteps(boundary, filters);
    expect(forbidden(steps)).toEqual([]);
    expect(steps.filter((step) => step.includes("AND path=?"))).toHaveLength(boundary.length);
    expect(steps.filter((step) => step.includes("AND path>? AND path<?"))).toHaveLength(boundary.length);
  };

  test("a list does, too", () => listed([]));
  test("a list of a source's documents does, too", () => listed(["source"]));
  // Left to itself, SQLite would scan all older documents of the workspace once for each scope.
  test("a list's next page does, too", () => listed(["before"]));
  test("the next page of a source's documents does, too", () => listed(["source", "before"]));

  test.each([undefined, boundary[0]])(
    "a list of scopes does, too, and sorts nothing (after %s)",
    async (after) => {
      const steps = await scopeSteps(boundary, after);
      expect(forbidden(steps)).toEqual([]);
      expect(steps.some((step) => step.includes("AND path>? AND path<?"))).toBe(true);
      expect(
        steps.filter((step) => step.startsWith("SEARCH d")).every((step) => step.includes("_sizes")),
      ).toBe(true);
    },
  );
});

describe("of a whole workspace", () => {
  test("a search scans only its scopes", async () => {
    expect(forbidden(await searchSteps(["/"]))).toEqual([WALK]);
  });

  test.each([[[]], [["before"]]] as const)(
    "a list follows the ids of its documents (%j)",
    async (filters) => {
      const [first, ...others] = await listSteps(["/"], filters);
      expect(first).toStartWith("SEARCH d USING INDEX vault_documents_by_id (workspace_id=?");
      expect(forbidden(others)).toEqual([]);
    },
  );

  test("a list of scopes scans only those scopes", async () => {
    expect(forbidden(await scopeSteps(["/"]))).toEqual([]);
  });

  test("a list of a source's documents scans only its scopes", async () => {
    const walk = WALK.replace(" s ", " vault_scopes ");
    expect(forbidden(await listSteps(["/"], ["source"]))).toEqual([walk]);
  });
});

test("nothing is looked up for an empty boundary", async () => {
  expect([await listSteps([]), await scopeSteps([])]).toEqual([[], []]);
});

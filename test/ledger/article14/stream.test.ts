import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type BundleRequest, openBundle } from "../../../src/ledger/article14/bundle.ts";
import type { Sql } from "../../../src/store/db.ts";
import { draft } from "../support.ts";
import { codes, verify } from "../verify/bundle/support.ts";
import { type BundleBench, openBench, WORKSPACE } from "./support.ts";

const ENTRIES = 30_000;
let bench: BundleBench;

beforeAll(async () => {
  bench = await openBench();
  const entry = { ...draft({ actor: "token:tok_0123456789", agent: "scout", task: "task_0123456789" }) };
  for (let at = 0; at < ENTRIES; at += 5_000) {
    await Promise.all(Array.from({ length: 5_000 }, () => bench.ledger.record(WORKSPACE.id, entry)));
  }
});
afterAll(() => bench.close());

/** The same store, and how often it was read. */
function counting(): { readonly db: Pick<Sql, "all" | "get">; reads: number } {
  const counted = {
    reads: 0,
    db: {
      all: <Row>(...query: Parameters<Sql["all"]>) => {
        counted.reads += 1;
        return bench.db.all<Row>(...query);
      },
      get: <Row>(...query: Parameters<Sql["get"]>) => {
        counted.reads += 1;
        return bench.db.get<Row>(...query);
      },
    },
  };
  return counted;
}

function open(
  db: Pick<Sql, "all" | "get">,
  request: Partial<BundleRequest> = {},
): AsyncGenerator<Uint8Array, void> {
  const { keys, clock } = bench;
  return openBundle(
    { db, keys, clock, payloadDays: 180 },
    { workspace: WORKSPACE, filter: {}, exportedBy: { actor: "system" }, ...request },
  );
}

/** Until the event loop has turned so often that whoever could go on would have. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Blob> {
  const all: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of chunks) all.push(new Uint8Array(chunk));
  return new Blob(all);
}

test("nothing is read before somebody asks", async () => {
  const store = counting();
  open(store.db);
  await settled();
  expect(store.reads).toBe(0);
});

test("a reader that takes nothing more makes it wait", async () => {
  const store = counting();
  const bundle = open(store.db);
  await bundle.next();
  await settled();
  const before = store.reads;
  await settled();
  expect(store.reads).toBe(before);
  // The entries alone take over a hundred.
  expect(before).toBeLessThan(60);
  await bundle.next();
  await bundle.next();
  await settled();
  const rest: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of bundle) rest.push(new Uint8Array(chunk));
  expect(store.reads).toBeGreaterThan(120);
});

test("a reader that leaves ends it", async () => {
  const store = counting();
  for await (const _ of open(store.db)) break;
  const before = store.reads;
  await settled();
  expect(store.reads).toBe(before);
});

test("a signal ends it, and the reader is told", async () => {
  const store = counting();
  const leaving = new AbortController();
  const bundle = open(store.db, { signal: leaving.signal });
  await bundle.next();
  leaving.abort(new Error("the server is stopped"));
  expect(readAll(bundle)).rejects.toThrow("the server is stopped");
  await settled();
  const before = store.reads;
  await settled();
  expect(store.reads).toBe(before);
});

test("a signal that was given before lets nothing begin", async () => {
  const bundle = open(bench.db, { signal: AbortSignal.abort(new Error("too late")) });
  expect(bundle.next()).rejects.toThrow("too late");
});

describe("what breaks it off is told, and what came until then is no bundle", () => {
  test.each([
    ["a store that can't be read any more", 90],
    ["a store that can't be read when the report is made", 300],
  ])("%s", async (_, after) => {
    let reads = 0;
    const failing = <T>(read: () => Promise<T>): Promise<T> => {
      reads += 1;
      return reads > after ? Promise.reject(new Error("disk I/O error")) : read();
    };
    const db: Pick<Sql, "all" | "get"> = {
      all: <Row>(...query: Parameters<Sql["all"]>) => failing(() => bench.db.all<Row>(...query)),
      get: <Row>(...query: Parameters<Sql["get"]>) => failing(() => bench.db.get<Row>(...query)),
    };
    const came: Uint8Array<ArrayBuffer>[] = [];
    const read = async () => {
      for await (const chunk of open(db)) came.push(new Uint8Array(chunk));
    };
    let failure: unknown;
    await read().catch((error: unknown) => {
      failure = error;
    });
    if (reads > after) {
      expect(failure).toEqual(new Error("disk I/O error"));
      const verification = await verify(new Blob(came));
      expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["not_an_archive"]]);
    } else expect(after).toBe(300);
  });

  test("a change of the signing key", async () => {
    const bundle = open(bench.db);
    await bundle.next();
    await bench.rotate();
    expect(readAll(bundle)).rejects.toThrow("signing key was changed");
  });
});

test("several at once are each whole", async () => {
  const bundles = await Promise.all(
    [{}, { filter: { agent: "scout" } }, { size: 1_000 }].map((request) => readAll(open(bench.db, request))),
  );
  for (const bundle of bundles)
    expect(await verify(bundle)).toMatchObject({ verdict: "holds", findings: [] });
});

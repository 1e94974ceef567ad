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
  const hash = (seed: number) => new Bun.CryptoHasher("sha512").update(String(seed)).digest("hex");
  for (let at = 0; at < ENTRIES; at += 5_000) {
    const some = Array.from({ length: 5_000 }, (_, place) =>
      bench.ledger.record(WORKSPACE.id, draft({ agent: "scout", detail: { hash: hash(at + place) } })),
    );
    await Promise.all(some);
  }
});
afterAll(() => bench.close());

/** The same store, with a count of reads. */
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
  const { heads, keys, clock } = bench;
  return openBundle(
    { db, heads, keys, clock, payloadDays: 180 },
    { workspace: WORKSPACE, filter: {}, exportedBy: { actor: "system" }, ...request },
  );
}

/**
 * Waits until nothing has been read for so long that any work able to continue would have. Packing runs in other
 * threads.
 */
async function settled(store: { readonly reads: number }): Promise<void> {
  for (let quiet = 0, before = store.reads; quiet < 30; quiet++) {
    await Bun.sleep(1);
    if (store.reads !== before) quiet = 0;
    before = store.reads;
  }
}

/** The message with which a promise fails. (`rejects` would block the event loop that the promise needs.) */
async function failureOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "nothing";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Blob> {
  const all: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of chunks) all.push(new Uint8Array(chunk));
  return new Blob(all);
}

test("nothing is read before it is requested", async () => {
  const store = counting();
  open(store.db);
  await settled(store);
  expect(store.reads).toBe(0);
});

test("a reader that stops reading makes it wait", async () => {
  const store = counting();
  const bundle = open(store.db);
  await bundle.next();
  await settled(store);
  const before = store.reads;
  await settled(store);
  expect(store.reads).toBe(before);
  // Reading the entries alone takes more than a hundred reads.
  expect(before).toBeLessThan(60);
  await bundle.next();
  await bundle.next();
  await settled(store);
  const rest: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of bundle) rest.push(new Uint8Array(chunk));
  expect(store.reads).toBeGreaterThan(120);
});

test("a reader that leaves ends it", async () => {
  const store = counting();
  for await (const _ of open(store.db)) break;
  const before = store.reads;
  await settled(store);
  expect(store.reads).toBe(before);
});

test("a signal ends it, and the reader is notified", async () => {
  const store = counting();
  const leaving = new AbortController();
  const bundle = open(store.db, { signal: leaving.signal });
  await bundle.next();
  leaving.abort(new Error("the server is stopped"));
  expect(await failureOf(readAll(bundle))).toContain("the server is stopped");
  await settled(store);
  const before = store.reads;
  await settled(store);
  expect(store.reads).toBe(before);
});

test("a signal given beforehand prevents the start", async () => {
  const bundle = open(bench.db, { signal: AbortSignal.abort(new Error("too late")) });
  expect(await failureOf(bundle.next())).toContain("too late");
});

describe("rights that end while nothing matches", () => {
  const own = { agent: "nobody", since: "2000-01-01T00:00:00.000Z" };

  test.each([
    ["while the entries are read", 3, {}],
    ["while an agent's own range is widened", 3, { seesOnly: own, filter: { agent: "nobody" } }],
    ["while erasures are read", 400, {}],
  ])("stop it before the next block: %s", async (_, most, request) => {
    const store = counting();
    let asked = 0;
    let readsAtEnd = -1;
    const bundle = open(store.db, {
      filter: { agent: "nobody" },
      ...request,
      admit() {
        asked += 1;
        if (asked < most) return undefined;
        if (asked === most) readsAtEnd = store.reads;
        throw new Error("the token was revoked");
      },
    });
    expect(await failureOf(readAll(bundle))).toContain("the token was revoked");
    await settled(store);
    expect(readsAtEnd).toBeGreaterThan(0);
    expect(store.reads - readsAtEnd).toBeLessThanOrEqual(1);
  });
});

describe("a failure is reported, and the part so far is not a bundle", () => {
  /** The same store; only this many reads succeed. */
  function failing(most: number): Pick<Sql, "all" | "get"> {
    let left = most;
    const read = <T>(query: () => Promise<T>): Promise<T> => {
      left -= 1;
      return left < 0 ? Promise.reject(new Error("disk I/O error")) : query();
    };
    return {
      all: <Row>(...query: Parameters<Sql["all"]>) => read(() => bench.db.all<Row>(...query)),
      get: <Row>(...query: Parameters<Sql["get"]>) => read(() => bench.db.get<Row>(...query)),
    };
  }

  test("a store that becomes unreadable, at any time", async () => {
    const store = counting();
    await readAll(open(store.db));
    for (const most of [0, 1, Math.floor(store.reads / 2), store.reads - 2, store.reads - 1]) {
      const came: Uint8Array<ArrayBuffer>[] = [];
      const read = async () => {
        for await (const chunk of open(failing(most))) came.push(new Uint8Array(chunk));
      };
      expect(await failureOf(read())).toBe("disk I/O error");
      const verification = await verify(new Blob(came));
      expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["not_an_archive"]]);
    }
  });

  test("a change of the signing key", async () => {
    const bundle = open(bench.db);
    await bundle.next();
    await bench.rotate();
    expect(await failureOf(readAll(bundle))).toContain("signing key was changed");
  });
});

test("several at once are each complete", async () => {
  const bundles = await Promise.all(
    [{}, { filter: { agent: "scout" } }, { size: 1_000 }].map((request) => readAll(open(bench.db, request))),
  );
  for (const bundle of bundles)
    expect(await verify(bundle)).toMatchObject({ verdict: "holds", findings: [] });
});

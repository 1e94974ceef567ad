/** A search reads from its store in few steps. It may wait for each, and has the same answer. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { getLoadablePath } from "sqlite-vec";
import { databasePath } from "../../../src/store/directory.ts";
import { SqliteIndex } from "../../../src/vault/index-sqlite.ts";
import type { IndexState, IndexStore } from "../../../src/vault/index-store.ts";
import type { SearchRequest } from "../../../src/vault/messages.ts";
import { search } from "../../../src/vault/search/search.ts";
import { SegmentCache } from "../../../src/vault/segments/segment-cache.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { MODES, write } from "../../support/vault.ts";

const SCOPES = ["support", "support/north", "sales"];
const COPIES = 30;
/** Differs from every text, so that no mode finds an exact copy. */
const QUERY = "who repairs the pump in the northern harbour";

let gateway: TestGateway;
let index: SqliteIndex;

beforeAll(async () => {
  gateway = await startGateway({ isOnFiles: true });
  for (const scope of SCOPES) {
    await write(gateway, { scope, text: `The pump of ${scope} is repaired in the harbour.` });
    await write(gateway, { scope, text: `Nobody in ${scope} has asked about northern lights.` });
  }
  // Near-duplicates of each other, which leave results missing until all of them have been read.
  for (let copy = 0; copy < COPIES; copy++) {
    const text = `${copy}: a pump is repaired by whoever finds it broken, however late it is and whatever it costs.`;
    await write(gateway, { scope: "copies", text });
  }
  await write(gateway, {
    scope: "copies",
    text: "The harbour has no other pump than this one, and it is new.",
  });
  index = new SqliteIndex(databasePath(gateway.dataDir), getLoadablePath());
});
afterAll(async () => {
  await index.close();
  await gateway.stop();
});

const later = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The same store, which answers in a later turn of the event loop, after `before` has run. */
function slowed(before: (what: string) => void): IndexStore {
  return {
    read: (work) =>
      index.read((state) =>
        work(
          new Proxy(state, {
            get(target, name: keyof IndexState & string) {
              return async (...args: never[]) => {
                await later();
                before(name);
                return (target[name] as (...args: never[]) => unknown).apply(target, args);
              };
            },
          }),
        ),
      ),
    close: () => index.close(),
  };
}

function request(changes: Partial<SearchRequest>): SearchRequest {
  return {
    workspaceId: 1,
    boundary: ["support", "sales"],
    query: QUERY,
    topK: 3,
    mode: "hybrid",
    filter: [],
    maxCharacters: null,
    recency: { halfLifeMs: 60_000, now: Date.now() },
    explain: true,
    vectors: { space: 1, vector: null },
    ...changes,
  };
}

describe.each(MODES)("a search (%s)", (mode) => {
  test.each([
    ["builtin/lexical", null],
    ["a model", Float32Array.from({ length: 256 }, (_, at) => Math.sin(at))],
  ])("of a slow store has the same answer (%s)", async (_, vector) => {
    for (const boundary of [["support", "sales"], ["copies"], ["/"], ["nowhere"]]) {
      const asked = request({ mode, boundary, vectors: { space: 1, vector } });
      const expected = await search(index, new SegmentCache(), asked);
      expect(expected.passages.length > 0).toBe(boundary[0] !== "nowhere");
      // Whatever is dropped in the meantime, the search has it.
      const cache = new SegmentCache();
      const store = slowed(() => {
        const used = [...cache.report().used];
        cache.change({ dropped: used, added: [] });
      });
      expect(await search(store, cache, asked)).toEqual(expected);
    }
  });
});

test("a segment that is dropped while others are read is still searched", async () => {
  const cache = new SegmentCache();
  const asked = request({ boundary: ["support", "sales"] });
  const expected = await search(index, cache, asked);
  const { used } = cache.report();
  expect(used.length).toBeGreaterThan(2);
  cache.change({ dropped: [...used].slice(1), added: [] });
  const store = slowed((what) => {
    if (what === "readSegments") cache.change({ dropped: [...used], added: [] });
  });
  expect(await search(store, cache, asked)).toEqual(expected);
});

test("a search reads in few steps", async () => {
  const steps: string[] = [];
  const store = slowed((what) => steps.push(what));
  const cache = new SegmentCache();
  await search(store, cache, request({ recency: null, mode: "keyword" }));
  expect(steps).toEqual(["segments", "readSegments", "passages"]);
  steps.length = 0;
  await search(store, cache, request({}));
  expect(steps.filter((step) => step !== "similarities")).toEqual(["segments", "updatedAt", "passages"]);
  steps.length = 0;
  const copies = request({ boundary: ["copies"], mode: "keyword", recency: null });
  expect((await search(store, cache, copies)).passages).toHaveLength(2);
  // All 31 passages are read: 4, 4, 8 and the rest.
  expect(steps.filter((step) => step === "passages")).toHaveLength(4);
});

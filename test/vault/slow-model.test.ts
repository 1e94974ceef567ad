/** A search never waits long for a model, and does not call a model that has just failed. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import {
  type EmbeddingsBehaviour,
  type FakeEmbeddings,
  startFakeEmbeddings,
} from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type Answer, search as searchIn, write } from "../support/vault.ts";

let clock: FakeClock;
let embeddings: FakeEmbeddings;
let gateway: TestGateway;
let id: string;
let questions = 0;

beforeEach(async () => {
  clock = new FakeClock();
  embeddings = startFakeEmbeddings();
  const provider = `up: { kind: openai-compatible, base_url: "${embeddings.baseUrl}" }`;
  gateway = await startGateway({
    clock,
    yaml: `providers:\n  ${provider}\nembeddings: { model: up/words }\n`,
  });
  id = (await write(gateway, { title: "Boats", text: "A sloop has one mast." })).id;
});

afterEach(async () => {
  await gateway.stop();
  await embeddings.stop();
});

/** Searches for a new question, because vectors of questions are cached. */
const search = (mode = "hybrid") => searchIn(gateway, { query: `sloop number${++questions}`, mode });

/** Searches, and lets the two seconds pass as soon as the model has the question. */
async function searchInVain(mode?: string): Promise<Answer> {
  const before = embeddings.requests.length;
  const searching = search(mode);
  await embeddings.arrived(before + 1);
  clock.advance(2_000);
  return searching;
}

/**
 * Searches without letting time pass.
 * @returns the mode of the answer, and how often the model was asked
 */
async function searchAtOnce(): Promise<{ mode: string; asked: number }> {
  const before = embeddings.requests.length;
  const { mode } = await search();
  return { mode, asked: embeddings.requests.length - before };
}

const FAILURES: readonly (readonly [string, EmbeddingsBehaviour])[] = [
  ["never answers", { hang: true }],
  ["answers 500", { status: 500 }],
];

describe.each(FAILURES)("if the model %s", (_, behaviour) => {
  beforeEach(() => embeddings.always(behaviour));

  test.each(["hybrid", "vector"])("a %s search falls back to keywords after two seconds", async (mode) => {
    const { results, mode: done } = await searchInVain(mode);
    expect(done).toBe("keyword");
    expect(results.map(({ document_id }) => document_id)).toEqual([id]);
  });

  test("later searches do not call it until its back-off ends", async () => {
    await searchInVain();
    embeddings.always({});
    expect(await searchAtOnce()).toEqual({ mode: "keyword", asked: 0 });
    clock.advance(999);
    expect(await searchAtOnce()).toEqual({ mode: "keyword", asked: 0 });
    clock.advance(1);
    expect(await searchAtOnce()).toEqual({ mode: "hybrid", asked: 1 });
    expect(await searchAtOnce()).toEqual({ mode: "hybrid", asked: 1 });
  });

  test("its back-off grows each time it fails again", async () => {
    await searchInVain();
    clock.advance(1_000);
    expect((await searchInVain()).mode).toBe("keyword");
    clock.advance(1_999);
    expect(await searchAtOnce()).toEqual({ mode: "keyword", asked: 0 });
    clock.advance(1);
    embeddings.always({});
    expect(await searchAtOnce()).toEqual({ mode: "hybrid", asked: 1 });
  });

  test("a document written during the back-off does not wait for it either", async () => {
    await searchInVain();
    const before = embeddings.requests.length;
    const { vectors } = await write(gateway, { title: "Yawls", text: "A yawl has two masts." });
    expect([vectors, embeddings.requests.length]).toEqual(["pending", before]);
  });
});

test("a question is abandoned when its own timeout expires, not before", async () => {
  embeddings.always({ hang: true });
  const searching = search();
  await embeddings.arrived(2);
  clock.advance(1_999);
  // The model gets another question as well, because nothing has failed yet.
  const other = search();
  await embeddings.arrived(3);
  clock.advance(1);
  expect((await searching).mode).toBe("keyword");
  clock.advance(1_999);
  expect((await other).mode).toBe("keyword");
});

test("a model that sends Retry-After is not called for that long", async () => {
  embeddings.always({ status: 429, headers: { "retry-after": "90" } });
  expect((await search()).mode).toBe("keyword");
  embeddings.always({});
  clock.advance(89_999);
  expect(await searchAtOnce()).toEqual({ mode: "keyword", asked: 0 });
  clock.advance(1);
  expect(await searchAtOnce()).toEqual({ mode: "hybrid", asked: 1 });
});

test("a keyword search works without the model", async () => {
  embeddings.always({ hang: true });
  const before = embeddings.requests.length;
  expect((await search("keyword")).mode).toBe("keyword");
  expect(embeddings.requests.length).toBe(before);
});

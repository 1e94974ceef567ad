/** How a model's similarities become scores: age lowers them, and a similarity still counts if it is the only one. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { idsOf, search, write } from "../support/vault.ts";

const DAY = 86_400_000;
let clock: FakeClock;
let embeddings: FakeEmbeddings;
let gateway: TestGateway;

beforeEach(async () => {
  clock = new FakeClock();
  embeddings = startFakeEmbeddings();
  // A text states its own similarity to the question: `near -0.3`.
  embeddings.always(({ input }) => ({
    body: JSON.stringify({
      object: "list",
      model: "words",
      data: input.map((text, index) => ({ object: "embedding", index, embedding: vectorOf(text) })),
      usage: { prompt_tokens: 1, total_tokens: 1 },
    }),
  }));
  const provider = `up: { kind: openai-compatible, base_url: "${embeddings.baseUrl}" }`;
  gateway = await startGateway({
    clock,
    yaml: `providers:\n  ${provider}\nembeddings: { model: up/words }\n`,
  });
});

afterEach(async () => {
  await gateway.stop();
  await embeddings.stop();
});

/** A unit vector with this cosine to the question's vector, which is (1, 0). */
function vectorOf(text: string): [number, number] {
  const cosine = Number(/near (-?[\d.]+\d)/.exec(text)?.[1] ?? 1);
  return [cosine, Math.sqrt(1 - cosine * cosine)];
}

/** Moves only the wall clock, because no timer has to run. */
const pass = (days: number) => clock.setWall(clock.now() + days * DAY);

/** Writes an older and a newer document of these similarities to the question, days apart. */
async function twoOfDifferentAge(older: number, newer: number): Promise<{ old: string; fresh: string }> {
  const old = await write(gateway, { title: "Old", text: `Heron near ${older.toFixed(2)} in the reeds.` });
  pass(40);
  const fresh = await write(gateway, { title: "New", text: `Kettle near ${newer.toFixed(2)} on the stove.` });
  pass(20);
  return { old: old.id, fresh: fresh.id };
}

const ask = (more: object) => search(gateway, { query: "quagga", recency: { half_life: "10d" }, ...more });

describe("recency never puts an older document above a newer one that is at least as similar", () => {
  const PAIRS = [
    [0.9, 0.9],
    [0.3, 0.5],
    [0.1, 0.1],
    [0, 0.1],
    [-0.5, 0.1],
  ] as const;
  const BELOW_ZERO = [
    [-0.5, -0.5],
    [-0.9, -0.2],
    [-0.3, -0.1],
    [-0.2, 0],
  ] as const;

  async function expectNewerFirst(older: number, newer: number): Promise<void> {
    const { old, fresh } = await twoOfDifferentAge(older, newer);
    const { results, mode } = await ask({ mode: "vector", explain: true });
    expect(mode).toBe("vector");
    const near = new Map(results.map(({ document_id, explain }) => [document_id, explain?.vector?.score]));
    expect(near.get(old)).toBeCloseTo(older, 3);
    expect(near.get(fresh)).toBeCloseTo(newer, 3);
    expect(idsOf(results)).toEqual([fresh, old]);
    for (const { score } of results) expect(score).toBeGreaterThanOrEqual(0);
  }

  test.each(PAIRS)("of %d and %d", expectNewerFirst);
  // All of these score 0, and among equal scores the older key comes first.
  for (const [older, newer] of BELOW_ZERO) {
    test(`of ${older} and ${newer}, both unlike the question`, () => expectNewerFirst(older, newer));
  }
});

test("recency puts a newer document before an older one that is slightly more similar", async () => {
  const { old, fresh } = await twoOfDifferentAge(0.9, 0.8);
  expect(idsOf((await ask({ mode: "vector", recency: undefined })).results)).toEqual([old, fresh]);
  expect(idsOf((await ask({ mode: "vector" })).results)).toEqual([fresh, old]);
});

describe("a hybrid search that finds only one document", () => {
  test.each([
    ["shares a word with the question", "quagga near 0.40"],
    ["shares none, and is near", "heron near 0.90"],
    ["shares none, and is far", "heron near -0.90"],
  ])("which %s, scores it above zero", async (_, text) => {
    const { id } = await write(gateway, { title: "One", text });
    const { results, mode } = await search(gateway, { query: "quagga" });
    expect([mode, idsOf(results)]).toEqual(["hybrid", [id]]);
    expect(results[0]?.score).toBeGreaterThan(0);
    const filtered = await ask({ scopes: ["support"] });
    expect(filtered.results[0]?.score).toBeGreaterThan(0);
  });

  test("which is as similar as another one, scores both", async () => {
    for (const text of ["heron near 0.30 in the reeds", "kettle near 0.30 on the stove"]) {
      await write(gateway, { title: text.slice(0, 6), text });
    }
    const { results } = await search(gateway, { query: "quagga" });
    expect(results).toHaveLength(2);
    for (const { score } of results) expect(score).toBeGreaterThan(0);
  });
});

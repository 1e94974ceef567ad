/** Documents that are embedded at the same time look up known vectors in turns. */
import { expect, test } from "bun:test";
import type { Embedder } from "../../src/models/embed/embedder.ts";
import { vectorsOf } from "../../src/vault/embed-passages.ts";
import { vec0Vectors } from "../../src/vault/rows/vec0.ts";
import { mostPerTurn } from "../support/loop-turns.ts";

test("many documents share the turns of the event loop", async () => {
  let lookups = 0;
  const db = {
    async get<Row>(): Promise<Row | undefined> {
      lookups += 1;
      return { embedding: new Uint8Array(8) } as Row;
    },
    all: async () => [],
  };
  const spaces = { written: [{ id: 1, name: "space", dimensions: 2, state: "active" } as const] };
  const embedder = { space: "space" } as Embedder;
  const passages = Array.from({ length: 320 }, (_, index) => ({
    ...{ title: "title", text: "text", hash: new Uint8Array([index & 255, index >> 8]) },
  }));
  const documents = Array.from({ length: 20 }, () =>
    vectorsOf(
      { db, spaces, vectors: vec0Vectors(true) },
      embedder,
      { workspaceId: 1, scope: "/" },
      passages,
      new AbortController().signal,
    ),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(await mostPerTurn(Promise.all(documents), () => lookups)).toBeLessThanOrEqual(96);
  expect(lookups).toBe(20 * 320);
});

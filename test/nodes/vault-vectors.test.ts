/** A model's vectors, filled in by one node and searched by both. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { longText, MODES, must, remove, search, write } from "../support/vault.ts";

setDefaultTimeout(60_000);

const SUBJECTS = ["refund", "invoice", "warranty", "delivery", "voucher", "account", "complaint", "shipment"];

describe.skipIf(missingPostgres !== undefined)("a model's vectors on two nodes", () => {
  let one: FakeEmbeddings;
  let two: FakeEmbeddings;
  let started: TestNodes;
  let a: TestGateway;
  let b: TestGateway;

  const yamlOf = (model: string | null) =>
    [
      "providers:",
      `  one: { kind: openai-compatible, base_url: "${one.baseUrl}" }`,
      `  two: { kind: openai-compatible, base_url: "${two.baseUrl}" }`,
      "limits: { requests_per_minute: 1000000 }",
      ...(model === null ? [] : [`embeddings: { model: ${model} }`]),
    ].join("\n");

  beforeEach(async () => {
    one = startFakeEmbeddings({ dims: 62 });
    two = startFakeEmbeddings({ dims: 32 });
    started = await startNodes(2, { yaml: yamlOf("one/words") });
    [a, b] = started.nodes as [TestGateway, TestGateway];
  });
  afterEach(async () => {
    await started.stop();
    await one.stop();
    await two.stop();
  });

  const rows = <Row extends Record<string, unknown>>(sql: string) => started.database.query<Row>(sql);
  const count = async (sql: string): Promise<number> => Number((await rows<{ n: string }>(sql))[0]?.n ?? -1);
  const pending = () => count("SELECT count(*) AS n FROM vault_pending");
  const active = async () =>
    (await rows<{ name: string }>("SELECT name FROM vault_spaces WHERE state = 'active'"))[0]?.name;

  async function expectEqualAnswers(nodes: readonly TestGateway[] = [a, b]): Promise<void> {
    for (const query of ["refund of an invoice", "shipment", "words about nothing"]) {
      for (const mode of MODES) {
        for (const filter of [{}, { even: true }]) {
          const body = { query, mode, filter, explain: true, top_k: 30 };
          const answers = await Promise.all(nodes.map((node) => search(node, body)));
          const [{ took_ms: _, ...first }, ...others] = answers as [(typeof answers)[0], ...typeof answers];
          expect(first.mode).toBe(mode);
          expect(first.results.length).toBeGreaterThan(0);
          for (const { took_ms: __, ...other } of others) expect(other).toEqual(first);
        }
      }
    }
  }

  const writeAll = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, n) =>
        write(n % 2 === 0 ? a : b, {
          title: `Note ${n}`,
          text: `${SUBJECTS[n % 8]} ${SUBJECTS[(n * 3) % 8]} and ${SUBJECTS[(n * 5 + 1) % 8]}, number ${n}.`,
          scope: `scope-${n % 3}`,
          metadata: { even: n % 2 === 0 },
        }),
      ),
    );

  test("give the same scores on both, from the first document on", async () => {
    const { id, vectors } = await write(a, { text: "A refund of an invoice." });
    expect(vectors).toBe("ready");
    const { mode, results } = await search(b, { query: "refund", mode: "vector" });
    expect([mode, results[0]?.document_id]).toEqual(["vector", id]);
    await writeAll(40);
    expect(await pending()).toBe(0);
    await expectEqualAnswers();
    // Until the copies of each scope are merged.
    await until(
      async () =>
        (await count(
          "SELECT coalesce(max(n), 0) AS n FROM (SELECT count(*) AS n FROM vault_vector_segments GROUP BY space_id, scope_id) AS s",
        )) === 1,
    );
    await expectEqualAnswers();
  });

  test("of long documents are filled in by one node, whichever wrote them, and then searched by both", async () => {
    // Only the first 256 passages get their vectors before the answer.
    const written = await Promise.all(
      [a, b].map((node, n) => write(node, { text: longText(`refund${n}`, 380) })),
    );
    for (const { chunks, vectors } of written) {
      expect(chunks).toBeGreaterThan(260);
      expect(vectors).toBe("pending");
    }
    await writeAll(12);
    await until(async () => (await pending()) === 0);
    const passages = await count("SELECT count(*) AS n FROM vault_chunks");
    expect(await count("SELECT count(*) AS n FROM vault_vectors")).toBe(passages);
    expect(await count("SELECT sum(chunks) AS n FROM vault_vector_segments")).toBe(passages);
    const { body } = await a.call("GET", "/v1/vault/documents");
    expect(body.data.every((each: { vectors: string }) => each.vectors === "ready")).toBe(true);
    await expectEqualAnswers();
  });

  test("are gone with their document, from both kinds of rows", async () => {
    const kept = await write(a, { text: "A refund that stays." });
    const long = await write(a, { text: longText("refund", 120) });
    expect(long.chunks).toBeGreaterThan(64);
    await until(async () => (await pending()) === 0);
    await write(b, { id: long.id, text: "A short refund." });
    await remove(b, kept.id);
    expect(await count("SELECT count(*) AS n FROM vault_vectors")).toBe(1);
    expect(await count("SELECT sum(chunks) AS n FROM vault_vector_segments")).toBe(1);
    for (const node of [a, b]) {
      const { results } = await search(node, { query: "refund", mode: "vector", top_k: 20 });
      expect(results.map(({ document_id }) => document_id)).toEqual([long.id]);
    }
  });

  test("of another model are filled in while both write, and then searched by every node that has it", async () => {
    await writeAll(16);
    const former = await active();
    const next = await started.add({ yaml: yamlOf("two/words") });
    // The older nodes do not have the new model, so the newest one fills in what they write.
    const more = await writeAll(16);
    await until(async () => (await active()) !== former);
    await until(async () => (await pending()) === 0);
    const after = await write(a, { text: "A refund after the change." });
    await until(async () => {
      const document = await must(next, [200], "GET", `/v1/vault/documents/${after.id}`);
      return document.vectors === "ready";
    });
    const passages = await count("SELECT count(*) AS n FROM vault_chunks");
    expect(
      await count(
        "SELECT count(*) AS n FROM vault_vectors WHERE space_id = (SELECT id FROM vault_spaces WHERE state = 'active')",
      ),
    ).toBe(passages);
    const other = await started.add({ yaml: yamlOf("two/words") });
    await expectEqualAnswers([next, other]);
    expect(more).toHaveLength(16);
  });
});

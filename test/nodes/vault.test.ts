/** One vault, written and searched on two nodes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { AGENT_SCOPES, idsOf, longText, MODES, must, remove, search, write } from "../support/vault.ts";

setDefaultTimeout(60_000);

const YAML = "limits: { requests_per_minute: 1000000 }";

describe.skipIf(missingPostgres !== undefined)("a vault on two nodes", () => {
  let started: TestNodes;
  let a: TestGateway;
  let b: TestGateway;
  let scopes = 0;
  /** A scope of the test's own. */
  const newScope = () => `scope-${++scopes}`;

  beforeAll(async () => {
    started = await startNodes(2, { yaml: YAML });
    [a, b] = started.nodes as [TestGateway, TestGateway];
  });
  afterAll(() => started.stop());

  const found = async (node: TestGateway, query: string, scope: string, mode = "hybrid") =>
    idsOf((await search(node, { query, mode, scopes: [scope], top_k: 50 })).results);

  const count = async (sql: string): Promise<number> =>
    Number((await started.database.query<{ n: string }>(sql))[0]?.n ?? -1);

  /** What one node answers, the other answers as well. */
  async function expectEqualAnswers(scope: string, queries: readonly string[]): Promise<void> {
    for (const query of queries) {
      for (const mode of MODES) {
        const body = { query, mode, scopes: [scope], explain: true, top_k: 20 };
        const [{ took_ms: _, ...one }, { took_ms: __, ...other }] = await Promise.all([
          search(a, body),
          search(b, body),
        ]);
        expect(other).toEqual(one);
      }
    }
  }

  test.each(MODES)("a document written on one is found on the other at once (%s)", async (mode) => {
    const scope = newScope();
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const { id } = await write(from, { text: "The pelican eats fish.", scope });
      expect(await found(to, "pelican fish", scope, mode)).toContain(id);
      await write(from, { id, text: "The walrus eats clams.", scope });
      expect(await found(to, "walrus clams", scope, mode)).toContain(id);
      expect((await search(to, { query: "pelican", mode: "keyword", scopes: [scope] })).results).toEqual([]);
      await remove(to, id);
      expect(await found(from, "walrus clams", scope, mode)).toEqual([]);
      expect((await from.call("GET", `/v1/vault/documents/${id}`)).status).toBe(404);
    }
  });

  test("a long document written on one has the same passages on the other", async () => {
    const scope = newScope();
    const { id, chunks } = await write(a, { text: longText("granite", 200), scope });
    expect(chunks).toBeGreaterThan(100);
    const { body } = await b.call("GET", `/v1/vault/documents/${id}`);
    expect(body.chunks).toBe(chunks);
    await expectEqualAnswers(scope, ["granite150x20 granite7x3", "paragraph 12"]);
    await remove(b, id);
    for (const table of ["vault_chunks", "vault_pages", "vault_vectors"])
      expect(
        await count(
          `SELECT count(*) AS n FROM ${table} WHERE ${table === "vault_vectors" ? "passage" : "key"} / 65536 NOT IN (SELECT key FROM vault_documents)`,
        ),
      ).toBe(0);
  });

  test("writers on both nodes lose nothing, while segments are merged and others search", async () => {
    const scope = newScope();
    let isOver = false;
    const searching = [a, b].map(async (node) => {
      while (!isOver) await search(node, { query: "number of everything", scopes: [scope], top_k: 100 });
    });
    const ids = await Promise.all(
      Array.from({ length: 48 }, async (_, n) => {
        const node = n % 2 === 0 ? a : b;
        const { id } = await write(node, { title: `Note ${n}`, text: `Everything number n${n}n.`, scope });
        return id;
      }),
    );
    // Half of them are replaced, and some are deleted, on the node that did not write them.
    await Promise.all(
      ids.map(async (id, n) => {
        const node = n % 2 === 0 ? b : a;
        if (n % 4 === 0) await remove(node, id);
        else if (n % 4 === 1)
          await write(node, { id, title: `Note ${n}`, text: `Replaced number r${n}r.`, scope });
      }),
    );
    isOver = true;
    await Promise.all(searching);
    for (const [n, id] of ids.entries()) {
      for (const node of [a, b]) {
        const own = await found(node, `n${n}n`, scope, "keyword");
        expect(own).toEqual(n % 4 >= 2 ? [id] : []);
        if (n % 4 === 1) expect(await found(node, `r${n}r`, scope, "keyword")).toEqual([id]);
      }
    }
    await until(
      async () =>
        (await count(
          `SELECT count(*) AS n FROM vault_segments AS g JOIN vault_scopes AS s ON s.id = g.scope_id WHERE s.path = '${scope}'`,
        )) === 1,
    );
    await expectEqualAnswers(scope, ["number", "replaced number r5r", "n2n n3n"]);
  });

  test("one document replaced on both nodes at the same time is one document", async () => {
    const scope = newScope();
    const { id } = await write(a, { text: "The first version.", scope });
    const versions = Array.from({ length: 16 }, (_, n) => `version v${n}v of the document`);
    await Promise.all(versions.map((text, n) => write(n % 2 === 0 ? a : b, { id, text, scope })));
    const { results } = await search(a, { query: "version", mode: "keyword", scopes: [scope], top_k: 50 });
    expect(results).toHaveLength(1);
    expect(versions).toContain(results[0]?.text ?? "");
    expect((await search(b, { query: "version", mode: "keyword", scopes: [scope] })).results).toEqual(
      results,
    );
    expect(await count(`SELECT count(*) AS n FROM vault_documents WHERE id = '${id}'`)).toBe(1);
  });

  test("a new document with the same id on both nodes is written once, and then replaced", async () => {
    const scope = newScope();
    const { id } = await write(a, { text: "To find out what an id looks like.", scope });
    await remove(a, id);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        (n % 2 === 0 ? a : b).call("POST", "/v1/vault/documents", {
          body: { id, title: "A note", scope, text: `Text t${n}t` },
        }),
      ),
    );
    expect(answers.map(({ status }) => status).filter((status) => status === 201)).toHaveLength(1);
    expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(7);
    expect(await found(b, "text", scope, "keyword")).toEqual([id]);
  });

  test("a scope deleted with its last document while the other node writes into it", async () => {
    const scope = newScope();
    for (let round = 0; round < 6; round++) {
      const { id } = await write(a, { text: `Round ${round}`, scope });
      const [, next] = await Promise.all([
        remove(a, id),
        write(b, { text: round % 2 === 0 ? `Next ${round}` : longText(`round${round}`, 30), scope }),
      ]);
      const { body } = await a.call("GET", `/v1/vault/documents/${next.id}`);
      expect(body.scope).toBe(scope);
      await remove(a, next.id);
    }
    expect(await count(`SELECT count(*) AS n FROM vault_scopes WHERE path = '${scope}'`)).toBe(0);
  });

  test("an agent's boundary holds on both nodes", async () => {
    const scope = newScope();
    await a.agent(`agent-${scope}`, { memory_scope: `${scope}/own` });
    const token = await a.token({ agent: `agent-${scope}`, scopes: AGENT_SCOPES });
    const own = await write(b, { text: "Common words of ours.", scope: `${scope}/own` });
    const foreign = await write(a, { text: "Common words of theirs.", scope: `${scope}/other` });
    for (const node of [a, b]) {
      for (const mode of MODES) {
        const { results } = await search(node, { query: "common words", mode }, token);
        expect(idsOf(results)).toEqual([own.id]);
      }
      expect((await node.call("GET", `/v1/vault/documents/${foreign.id}`, { token })).status).toBe(404);
      const body = { title: "x", text: "y", scope: `${scope}/other` };
      const { status } = await node.call("POST", "/v1/vault/documents", { token, body });
      expect(status).toBe(403);
    }
  });

  test("filters mean the same on both nodes", async () => {
    const scope = newScope();
    const { id } = await write(a, {
      text: "Filtered words.",
      scope,
      metadata: { lot: 7, kind: "x" },
      source_uri: "https://x.example",
    });
    await write(b, { text: "Filtered words too.", scope, metadata: { lot: 7, kind: "y" } });
    for (const node of [a, b]) {
      for (const mode of MODES) {
        const body = { query: "filtered words", mode, scopes: [scope], filter: { lot: 7, kind: "x" } };
        expect(idsOf((await search(node, body)).results)).toEqual([id]);
      }
      const listed = await must(node, [200], "GET", "/v1/vault/documents?source_uri=https%3A%2F%2Fx.example");
      expect(listed.data.map((each: { id: string }) => each.id)).toEqual([id]);
    }
  });

  test("what a dead node left unfinished is removed, and what a living one is writing is not", async () => {
    const scope = newScope();
    const { id } = await write(a, { text: "Left behind by a dead node.", scope });
    const { id: alive } = await write(a, { text: "Being written by a living node.", scope });
    const [node] = await started.database.query<{ id: string }>("SELECT id FROM nodes ORDER BY id LIMIT 1");
    const claim = (document: string, owner: string) =>
      started.database.query(
        `INSERT INTO vault_claims SELECT key, $2 FROM vault_documents WHERE id = $1
         ON CONFLICT (document_key) DO UPDATE SET node_id = excluded.node_id`,
        [document, owner],
      );
    await claim(alive, node?.id ?? "");
    await claim(id, "node_of_the_past");
    // Both look like documents that are being written.
    await started.database.query("UPDATE vault_documents SET state = 'building' WHERE id = ANY ($1)", [
      [id, alive],
    ]);
    await until(
      async () => (await count(`SELECT count(*) AS n FROM vault_documents WHERE id = '${id}'`)) === 0,
    );
    expect(await count(`SELECT count(*) AS n FROM vault_documents WHERE id = '${alive}'`)).toBe(1);
  });
});

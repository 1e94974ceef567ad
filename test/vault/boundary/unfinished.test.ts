import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TestGateway } from "../../support/gateway.ts";
import { storeRows } from "../../support/store-rows.ts";
import { MODES } from "../../support/vault.ts";
import { EMBEDDINGS, type House, startHouse, type Workspace, workspaceOf } from "./support.ts";

/**
 * A document's parts, including vectors, are stored before it is shown and removed after it is hidden, and other
 * calls run in between. These tests put the file into such a state by hand, so that no test has to hit the moment.
 */
/**
 * Puts a document into the state `building` or `removing`: its parts exist, but no live segment refers to them. It
 * must be the only document in its scope.
 */
async function unfinish(gateway: TestGateway, id: string, state: "building" | "removing"): Promise<void> {
  const [row] = await storeRows<{ key: number; scope_id: number }>(
    gateway,
    "SELECT key, scope_id FROM vault_documents WHERE id = $1",
    [id],
  );
  if (!row) throw new Error("no such document");
  // Otherwise it would be taken for the remains of a dead node.
  if (gateway.databaseUrl !== null) {
    await storeRows(gateway, "INSERT INTO vault_claims SELECT $1::bigint, id FROM nodes LIMIT 1", [row.key]);
  }
  await storeRows(gateway, "UPDATE vault_documents SET state = $1 WHERE key = $2", [state, row.key]);
  await storeRows(gateway, "DELETE FROM vault_metadata WHERE document_key = $1", [row.key]);
  // The segments of a hidden document are normally gone; here they stay, and no search may read them.
  await storeRows(gateway, "UPDATE vault_segments SET live = 0, document_key = $1 WHERE scope_id = $2", [
    row.key,
    row.scope_id,
  ]);
}

describe.each(EMBEDDINGS)("with the vectors of %s", (embeddings) => {
  let house: House;
  let workspace: Workspace;
  beforeAll(async () => {
    house = await startHouse(embeddings);
    workspace = workspaceOf(house.gateway, house.gateway.admin);
  });
  afterAll(() => house.stop());

  describe.each(["building", "removing"] as const)("a document that is %s", (state) => {
    test.each(MODES)("is not found in mode %s", async (mode) => {
      const scope = `${state}/${mode}`;
      const hidden = await workspace.write({ text: "The secret of the unfinished quagmire.", scope });
      await unfinish(house.gateway, hidden, state);
      const shown = await workspace.write({ text: "The quagmire that everybody sees.", scope });
      for (const query of ["quagmire", "quagmyre", "secret unfinished"]) {
        for (const filter of [{}, { none: "such" }]) {
          const { results } = await workspace.search({ query, mode, scopes: [scope], filter });
          const found = results.map(({ document_id }) => document_id);
          expect(found.filter((id) => id !== shown)).toEqual([]);
          if (mode === "vector" && Object.keys(filter).length === 0) expect(found).toEqual([shown]);
        }
      }
      expect((await workspace.call("GET", `/v1/vault/documents/${hidden}`)).status).toBe(404);
    });

    test("does not displace visible documents, however similar it is", async () => {
      const scope = `${state}/shared`;
      const text = Array.from({ length: 700 }, (_, at) =>
        `The quagmire has the number q${at}.`.repeat(6),
      ).join("\n\n");
      const hidden = await workspace.write({ text, scope });
      await unfinish(house.gateway, hidden, state);
      const shown = await workspace.write({ text: "Something about a quag.", scope });
      const { results } = await workspace.search({
        query: "quagmire",
        mode: "vector",
        scopes: [scope],
        top_k: 5,
      });
      expect(results.map(({ document_id }) => document_id)).toEqual([shown]);
    });
  });
});

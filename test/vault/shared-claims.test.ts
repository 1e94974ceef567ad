/** A node that was given up while it was writing a document cannot go on with it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Db, StoreUnavailable } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { sharedClaims } from "../../src/vault/rows/shared-claims.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";

describe.skipIf(missingPostgres !== undefined)("a document being written", () => {
  let database: TestDatabase;
  let db: Db;
  const slow = sharedClaims({ id: "node_slow" });
  const other = sharedClaims({ id: "node_other" });

  beforeEach(async () => {
    database = await createDatabase();
    db = await openPostgres({ url: database.url });
    await db.run("INSERT INTO workspaces (id, name, created_at) VALUES (1, 'default', 0)");
    await db.run("INSERT INTO nodes VALUES ('node_slow', '1', 0, 0, 0), ('node_other', '1', 0, 0, 0)");
    await db.run("INSERT INTO vault_scopes (id, workspace_id, path) VALUES (5, 1, 'support')");
    await db.tx(null, async (tx) => {
      tx.write(
        `INSERT INTO vault_documents (key, workspace_id, id, scope_id, state, title, metadata, content_type, content_hash, characters, chunks,
           pages, created_by, created_at, updated_at)
         VALUES (7, 1, 'doc_x', 5, 'building', 't', '{}', 'text/plain', '', 0, 3, 2, 'tests', 0, 0)`,
      );
      slow.add(tx, 7);
    });
  });
  afterEach(async () => {
    await db.close();
    await database.drop();
  });

  test("is left alone while its node is there", async () => {
    expect(await other.takeOver(db)).toEqual([]);
    await db.tx(null, (tx) => slow.hold(tx, 7));
  });

  test("belongs to the node that takes it over once its own node was given up", async () => {
    await db.run("DELETE FROM nodes WHERE id = 'node_slow'");
    expect(await other.takeOver(db)).toEqual([{ key: 7, workspaceId: 1, scopeId: 5, chunks: 3, pages: 2 }]);
    const held = db.tx(null, (tx) => slow.hold(tx, 7));
    expect(await held.catch((error) => error)).toBeInstanceOf(StoreUnavailable);
    await db.tx(null, (tx) => other.hold(tx, 7));
    expect(await other.takeOver(db)).toEqual([]);
  });

  test("that nobody claims is taken over, and one that can be seen is not", async () => {
    await db.tx(null, async (tx) => slow.release(tx, 7));
    expect((await other.takeOver(db)).map(({ key }) => key)).toEqual([7]);
    await db.run("UPDATE vault_documents SET state = 'live'");
    await db.run("DELETE FROM nodes");
    expect(await other.takeOver(db)).toEqual([]);
  });
});

/** A database that is copied as a whole. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { upgrade } from "../../../src/store/postgres/upgrade.ts";
import { WholeDatabase } from "../../../src/store/postgres/whole-database.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";

describe.skipIf(missingPostgres !== undefined)("a whole database", () => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await createDatabase();
  });

  afterEach(() => database.drop());

  const tables = () => database.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'");

  test("is not read if it is empty, and gets no tables", async () => {
    await expect(WholeDatabase.openSource(database.url)).rejects.toThrow("is empty");
    expect(await tables()).toEqual([]);
  });

  test("is not read with an older schema, which stays as it is", async () => {
    await upgrade(database.url);
    await database.query("DELETE FROM gatehouse_schema WHERE version > 2");
    await expect(WholeDatabase.openSource(database.url)).rejects.toThrow("has the schema 2");
    await database.query(
      "INSERT INTO nodes (id, version, since, seen_at, tasks) VALUES ('n', '0', 0, 9e15, 0)",
    );
    // Servers that run are not upgraded by a copy.
    await expect(WholeDatabase.openTarget(database.url)).rejects.toThrow("in use by 1 server");
    expect(await database.query("SELECT MAX(version)::int AS version FROM gatehouse_schema")).toEqual([
      { version: 2 },
    ]);
  });

  test("lets nobody write or start while it is open", async () => {
    await upgrade(database.url);
    const whole = await WholeDatabase.openSource(database.url);
    // As a server that was frozen before the copy began, or that starts now.
    const blocked = (sql: string) =>
      expect(database.query(`SET lock_timeout = 200; ${sql}`)).rejects.toThrow("lock timeout");
    await blocked("INSERT INTO ledger_tails (workspace_id) VALUES (1)");
    await blocked("INSERT INTO nodes (id, version, since, seen_at, tasks) VALUES ('n', '0', 0, 0, 0)");
    await blocked("INSERT INTO meta (key, value) VALUES ('k', 'v')");
    await blocked("SELECT * FROM ledger_tails FOR UPDATE");
    await blocked("SELECT version FROM gatehouse_schema");
    whole.abandon();
  });
});

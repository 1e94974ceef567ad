/**
 * Anyone who can write the database's file, but has no key, cannot make the server write and seal the content of an
 * object.
 */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { OperatorError } from "../../src/base/errors.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations/index.ts";
import { NEWEST_DIGEST, schemaDigest, schemaOf } from "../../src/store/sqlite/schema.ts";
import { WITHOUT_CLIENTS_CALLS } from "../support/older-schema.ts";
import { openScene, type Scene } from "./seals/support.ts";

setDefaultTimeout(60_000);

let scene: Scene;
beforeEach(async () => {
  scene = await openScene();
});
afterEach(() => scene.remove());

/** The error of the next start. */
async function refusal(edit: (file: Database) => void): Promise<OperatorError> {
  try {
    await scene.restart(edit);
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
  throw new Error("it has started");
}

const RAISE = `CREATE TRIGGER zz AFTER UPDATE OF secret_hash ON tokens
  BEGIN UPDATE tokens SET scopes = '["admin"]' WHERE id = NEW.id; END`;

describe("a start refuses, and names", () => {
  test.each<[string, string, (file: Database) => void]>([
    ["a trigger", 'The trigger "zz" of the table tokens', (file) => file.exec(RAISE)],
    [
      "a trigger in a file that claims to be older",
      'The trigger "zz" of the table tokens',
      (file) => {
        file.exec(RAISE);
        for (const statement of WITHOUT_CLIENTS_CALLS) file.exec(statement);
        file.exec("PRAGMA user_version = 16");
      },
    ],
    ["a view", 'The view "mine"', (file) => file.exec("CREATE VIEW mine AS SELECT * FROM tokens")],
    ["a table", 'The table "mine"', (file) => file.exec("CREATE TABLE mine (id INTEGER)")],
    [
      "an index",
      'The index "mine" of the table tokens',
      (file) => file.exec("CREATE INDEX mine ON tokens (name) WHERE name = 'x'"),
    ],
    [
      "a trigger with the name of a vault table",
      'The trigger "vault_vectors_9" of the table tokens',
      (file) => file.exec(RAISE.replace("zz", "vault_vectors_9")),
    ],
    [
      "a changed table",
      'The table "tokens"',
      (file) => file.exec("ALTER TABLE tokens ADD COLUMN mine TEXT DEFAULT 'x'"),
    ],
    [
      "a changed trigger",
      'The trigger "ledger_no_update" of the table ledger',
      (file) => {
        file.exec("DROP TRIGGER ledger_no_update");
        file.exec("CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN SELECT 1; END");
      },
    ],
    ["a missing table", 'The table "payloads" is missing', (file) => file.exec("DROP TABLE payloads")],
  ])("%s", async (_, name, edit) => {
    const { message, hint } = await refusal(edit);
    expect(message).toStartWith(name);
    expect(hint).toContain("gatehouse ledger verify");
  });
});

test("the digest by which most starts recognise their schema is that of the migrations", () => {
  const expected = schemaOf(MIGRATIONS.length);
  expect(schemaDigest(expected)).toBe(NEWEST_DIGEST);
  const [first, ...others] = expected;
  if (!first) throw new Error("the migrations create nothing");
  expect(schemaDigest(others)).not.toBe(NEWEST_DIGEST);
  expect(schemaDigest([{ ...first, sql: `${first.sql} ` }, ...others])).not.toBe(NEWEST_DIGEST);
  expect(schemaDigest([{ ...first, tbl_name: "tokens" }, ...others])).not.toBe(NEWEST_DIGEST);
  const vectors = { type: "table", name: "vault_vectors_1", tbl_name: "vault_vectors_1" };
  const made = { ...vectors, sql: "CREATE VIRTUAL TABLE vault_vectors_1 USING vec0(v)" };
  expect(schemaDigest([...expected, made])).toBe(NEWEST_DIGEST);
  expect(schemaDigest([...expected, { ...vectors, sql: RAISE }])).not.toBe(NEWEST_DIGEST);
});

test("a start accepts what SQLite's ANALYZE has left, and a file whose foreign trigger was dropped again", async () => {
  await scene.restart((file) => file.exec("ANALYZE"));
  await refusal((file) => file.exec(RAISE));
  await scene.restart((file) => file.exec("DROP TRIGGER zz"));
  expect((await scene.gateway.call("GET", "/v1/agents")).status).toBe(200);
});

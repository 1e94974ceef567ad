import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";
import { createSealedKeysTable, sealedKeys } from "../support/sealed-keys.ts";
import { SEALS } from "../support/seals.ts";

let directory: ReturnType<typeof tempDir>;
let db: SqliteDb;

beforeEach(async () => {
  directory = tempDir();
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
  await createSealedKeysTable(db);
});
afterEach(async () => {
  await db.close();
  directory.remove();
});

const text = (value: string) => Buffer.from(value);
const put = async (id: string, secret: string, replaces: string | null) => {
  const keys = await sealedKeys(db);
  return db.tx(null, (tx) => keys.put(tx, { purpose: "ledger", id, secret: text(secret), replaces }));
};
const read = async (master?: number) => {
  const stored = await (await sealedKeys(db, master)).read("ledger");
  return stored && { id: stored.id, secret: Buffer.from(stored.secret).toString() };
};
const flip = (purpose: string) =>
  db.run(
    "UPDATE sealed_keys SET sealed = CAST(substr(sealed, 1, length(sealed) - 1) || X'00' AS BLOB) WHERE purpose = $1",
    [purpose],
  );
/** Replaces the id of the key with which a row claims to be sealed. */
const claimOtherKey = (purpose: string) =>
  db.run(
    "UPDATE sealed_keys SET sealed = CAST(substr(sealed, 1, 1) || X'0102030405060708' || substr(sealed, 10) AS BLOB) WHERE purpose = $1",
    [purpose],
  );

describe("refused", () => {
  test("another master key, before any key is stored and after", async () => {
    await sealedKeys(db);
    await expect(sealedKeys(db, 2)).rejects.toMatchObject({
      message: "the store's keys are sealed with another master key",
      hint: expect.stringContaining("GATEHOUSE_MASTER_KEY"),
      exitCode: 1,
    });
    await put("a", "secret", null);
    await expect(read(2)).rejects.toThrow("another master key");
    expect(await read()).toEqual({ id: "a", secret: "secret" });
  });

  test("a check row that was changed, which is not another master key", async () => {
    await sealedKeys(db);
    await flip("check");
    await expect(sealedKeys(db)).rejects.toThrow('the row "check" of the table sealed_keys was changed');
  });

  test("a check row that was removed beside keys, so no other master key can take its place", async () => {
    await put("a", "secret", null);
    await db.run("DELETE FROM sealed_keys WHERE purpose = 'check'");
    for (const master of [1, 2]) {
      await expect(sealedKeys(db, master)).rejects.toThrow('the row "check" of the table sealed_keys was');
    }
  });

  test.each([
    ["changed", () => flip("ledger")],
    ["sealed with a key other than that of the check row", () => claimOtherKey("ledger")],
    ["named differently", () => db.run("UPDATE sealed_keys SET id = 'b' WHERE purpose = 'ledger'")],
    [
      "moved from another purpose",
      async () => {
        const keys = await sealedKeys(db);
        await db.tx(null, (tx) =>
          keys.put(tx, { purpose: "webhook", id: "a", secret: text("other"), replaces: null }),
        );
        await db.run(
          "UPDATE sealed_keys SET sealed = (SELECT sealed FROM sealed_keys WHERE purpose = 'webhook') WHERE purpose = 'ledger'",
        );
      },
    ],
  ])("a row that was %s", async (_, change) => {
    await put("a", "secret", null);
    await change();
    await expect(read()).rejects.toMatchObject({
      message: 'the row "ledger" of the table sealed_keys was changed, damaged or removed',
      hint: expect.stringContaining("from a backup"),
    });
  });
});

test("a key is stored once, and replaced only if it is the one to be replaced", async () => {
  expect(await read()).toBeUndefined();
  expect(await put("a", "first", null)).toBe(true);
  expect(await put("b", "second", null)).toBe(false);
  expect(await put("b", "second", "c")).toBe(false);
  expect(await read()).toEqual({ id: "a", secret: "first" });
  expect(await put("b", "second", "a")).toBe(true);
  expect(await read()).toEqual({ id: "b", secret: "second" });
  await db.run("DELETE FROM sealed_keys WHERE purpose = 'ledger'");
  expect(await put("c", "third", "b")).toBe(true);
  expect(await read()).toEqual({ id: "c", secret: "third" });
});

test("of two nodes that start at once, the first one determines the master key", async () => {
  const opened = await Promise.allSettled([sealedKeys(db), sealedKeys(db, 2), sealedKeys(db)]);
  expect(opened.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("no row contains the secret", async () => {
  await put("a", "a secret in plain text", null);
  const rows = await db.all<{ sealed: Uint8Array }>("SELECT sealed FROM sealed_keys");
  for (const { sealed } of rows) expect(Buffer.from(sealed).toString("latin1")).not.toContain("secret");
});

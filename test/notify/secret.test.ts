import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SealedWebhookSecret } from "../../src/notify/sealed-secret.ts";
import { openWebhookSecret, WebhookSecretFile } from "../../src/notify/secret.ts";
import { decodeSecret, encodeSecret } from "../../src/notify/signature.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";
import { createSealedKeysTable, sealedKeys } from "../support/sealed-keys.ts";
import { SEALS } from "../support/seals.ts";

let directory: ReturnType<typeof tempDir>;
beforeEach(() => {
  directory = tempDir();
});
afterEach(() => directory.remove());

const file = () => join(directory.path, "webhook.key");
const secretOf = (configured?: string) =>
  openWebhookSecret({ configured, secretStore: new WebhookSecretFile(directory.path) });

test("the first call creates a file that only its owner can read, and the next call reads it", async () => {
  const made = await secretOf();
  expect(made).toHaveLength(32);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(readFileSync(file(), "utf8")).toBe(`${encodeSecret(made)}\n`);
  expect(Buffer.from(await secretOf())).toEqual(Buffer.from(made));
});

test("with a configured secret, no file is created", async () => {
  const configured = encodeSecret(new Uint8Array(24).fill(1));
  expect(Buffer.from(await secretOf(configured))).toEqual(Buffer.alloc(24, 1));
  expect(existsSync(file())).toBe(false);
});

test("a file that others may read, or that contains no secret, is refused", async () => {
  writeFileSync(file(), encodeSecret(new Uint8Array(32)));
  chmodSync(file(), 0o644);
  await expect(secretOf()).rejects.toThrow("mode 0644");
  chmodSync(file(), 0o600);
  writeFileSync(file(), "whsec_short");
  await expect(secretOf()).rejects.toThrow("does not contain a key");
});

describe("in a store that nodes share", () => {
  let db: SqliteDb;
  beforeEach(async () => {
    db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
    await createSealedKeysTable(db);
  });
  afterEach(() => db.close());

  const shared = async (configured?: string) =>
    openWebhookSecret({ configured, secretStore: new SealedWebhookSecret(db, await sealedKeys(db)) });
  const rows = () => db.all("SELECT 1 FROM sealed_keys WHERE purpose = 'webhook'");

  test("a row that was changed is refused", async () => {
    await shared();
    await db.run("UPDATE sealed_keys SET sealed = substr(sealed, 1, 40) WHERE purpose = 'webhook'");
    await expect(shared()).rejects.toThrow('the row "webhook" of the table sealed_keys was changed');
  });

  test("the first call stores a secret, and the next call reads it", async () => {
    const made = await shared();
    expect(made).toHaveLength(32);
    expect(Buffer.from(await shared())).toEqual(Buffer.from(made));
    expect(existsSync(file())).toBe(false);
  });

  test("nodes that start at once get the same secret", async () => {
    const [one, other] = await Promise.all([shared(), shared()]);
    expect(Buffer.from(one)).toEqual(Buffer.from(other));
  });

  test("with a configured secret, none is stored", async () => {
    const configured = encodeSecret(new Uint8Array(24).fill(1));
    expect(Buffer.from(await shared(configured))).toEqual(Buffer.alloc(24, 1));
    expect(await rows()).toEqual([]);
  });
});

test.each([
  ["", undefined],
  ["whsec_", undefined],
  [`whsec_${"A".repeat(28)}`, undefined],
  [`whsec_${"A".repeat(31)}`, undefined],
  [`whsec_${"A".repeat(32)}`, 24],
  [`whsec_${Buffer.alloc(64).toString("base64")}`, 64],
  [`whsec_${Buffer.alloc(65).toString("base64")}`, undefined],
  [`whsec_${"-".repeat(32)}`, undefined],
  ["A".repeat(32), undefined],
])("%s has %p bytes", (text, length) => {
  expect(decodeSecret(text)?.length).toBe(length);
});

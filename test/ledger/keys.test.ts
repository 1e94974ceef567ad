import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/base/errors.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { nodeHeadStore } from "../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../src/ledger/keys/file.ts";
import { type LedgerKeys, openLedgerKeys } from "../../src/ledger/keys/keys.ts";
import { openChains } from "../../src/ledger/open-chains.ts";
import { formatNote, parseNote, parseVerifierKey, signersOf } from "../../src/ledger/proof/note.ts";
import { sha256 } from "../../src/ledger/tree-hash.ts";
import type { Tx } from "../../src/store/db.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { testSigner } from "./proof/signing.ts";

let directory: ReturnType<typeof tempDir>;
let db: SqliteDb;
const clock = new FakeClock();

beforeEach(() => {
  directory = tempDir();
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
});
afterEach(async () => {
  await db.close();
  directory.remove();
});

const parts = () => ({
  db,
  headStore: nodeHeadStore,
  keyStore: new SigningKeyFile(directory.path),
  clock,
  random: systemRandom,
});
const open = () => openLedgerKeys(parts());
const file = (name = "ledger.key") => join(directory.path, name);
const ed25519 = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) =>
  verify(
    null,
    message,
    createPublicKey({
      key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), publicKey]),
      format: "der",
      type: "spki",
    }),
    signature,
  );

/** Which of these keys, by position, sign what this node signs now. */
async function signersNow(keys: LedgerKeys, verifierKeys: readonly string[]): Promise<number[]> {
  const text = "a text\n";
  const note = parseNote(formatNote({ text, signatures: [keys.sign("default", text)] }));
  const known = verifierKeys.map((key) => parseVerifierKey(sha256, key));
  return (await signersOf(note, known, ed25519)).map((key) => known.indexOf(key));
}

describe("a key that can't be used is refused", () => {
  test("missing after ledgers were signed with it", async () => {
    await open();
    rmSync(file());
    await expect(open()).rejects.toThrow(/ledger\.key is missing/);
    expect(existsSync(file())).toBe(false);
  });

  test("replaced by another one", async () => {
    await open();
    const other = tempDir();
    const foreign = openSqlite(join(other.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
    await openLedgerKeys({
      ...parts(),
      db: foreign,
      headStore: nodeHeadStore,
      keyStore: new SigningKeyFile(other.path),
    });
    writeFileSync(file(), readFileSync(join(other.path, "ledger.key")), { mode: 0o600 });
    await foreign.close();
    other.remove();
    await expect(open()).rejects.toThrow(/is not the one in force according to the database/);
  });

  test.each([
    ["nothing", ""],
    ["no key", "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n"],
  ])("%s in the file", async (_, content) => {
    writeFileSync(file(), content, { mode: 0o600 });
    await expect(open()).rejects.toThrow(/does not contain a key/);
  });

  test("one that others can read", async () => {
    await open();
    chmodSync(file(), 0o640);
    await expect(open()).rejects.toThrow(/is accessible to other users/);
  });
});

test("the first start creates it, for its owner only, and each later start finds it", async () => {
  const keys = await open();
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  const { current, former } = keys.verifierKeys("default");
  expect(former).toEqual([]);
  expect(current).toStartWith(`gatehouse/${keys.instance}/default+`);
  const again = await open();
  expect(again.instance).toBe(keys.instance);
  expect(again.verifierKeys("default").current).toBe(current);
  expect(await signersNow(again, [current])).toEqual([0]);
});

test("each workspace's key has its own name, so no signature counts for another workspace", async () => {
  const keys = await open();
  const other = keys.verifierKeys("other").current;
  expect(await signersNow(keys, [other])).toEqual([]);
});

describe("a rotation", () => {
  test("has both keys sign, keeps the old verifier key, and forgets the old private key", async () => {
    const keys = await open();
    const before = keys.verifierKeys("default").current;
    const oldFile = readFileSync(file(), "utf8");
    let seen: unknown;
    await keys.rotate(
      () => [1],
      async (_tx, change) => {
        const note = parseNote(formatNote({ text: "x\n", signatures: change.signBoth("default", "x\n") }));
        const { from, to } = change.verifierKeys("default");
        const known = [from, to].map((key) => parseVerifierKey(sha256, key));
        seen = (await signersOf(note, known, ed25519)).length;
      },
    );
    expect(seen).toBe(2);
    const { current, former } = keys.verifierKeys("default");
    expect(former).toEqual([before]);
    expect(await signersNow(keys, [before, current])).toEqual([1]);
    expect(readFileSync(file(), "utf8")).not.toBe(oldFile);
    expect(existsSync(file("ledger.key.next"))).toBe(false);
    expect((await open()).verifierKeys("default")).toEqual({ current, former });
  });

  test("that fails changes nothing", async () => {
    const keys = await open();
    const before = keys.verifierKeys("default");
    await expect(
      keys.rotate(
        () => [1],
        () => Promise.reject(new Error("no")),
      ),
    ).rejects.toThrow("no");
    expect(keys.verifierKeys("default")).toEqual(before);
    expect((await open()).verifierKeys("default")).toEqual(before);
    await keys.rotate(
      () => [1],
      async () => {},
    );
    expect(keys.verifierKeys("default").former).toEqual([before.current]);
  });

  test("that overlaps with others runs after them: every key that was once in force is known", async () => {
    const keys = await open();
    const before = keys.verifierKeys("default").current;
    const changes: { from: string; to: string }[] = [];
    const attest = async (tx: Tx, change: { verifierKeys(w: string): { from: string; to: string } }) => {
      const named = change.verifierKeys("default");
      tx.onCommit(() => changes.push(named));
    };
    await Promise.all([
      keys.rotate(() => [1], attest),
      keys.rotate(() => [1], attest),
      keys.rotate(() => [1], attest),
    ]);
    const { current, former } = keys.verifierKeys("default");
    expect(changes.map(({ from }) => from)).toEqual([...former]);
    expect(former[0]).toBe(before);
    expect(new Set([...former, current]).size).toBe(4);
    expect((await open()).verifierKeys("default")).toEqual({ current, former });
    expect(await signersNow(keys, [current])).toEqual([0]);
  });

  test("whose new key is not named yet does not lose that key to the next rotation", async () => {
    const keys = await open();
    const oldFile = readFileSync(file());
    await keys.rotate(
      () => [1],
      async () => {},
    );
    renameSync(file(), file("ledger.key.next"));
    writeFileSync(file(), oldFile, { mode: 0o600 });
    await expect(
      keys.rotate(
        () => [1],
        () => Promise.reject(new Error("full")),
      ),
    ).rejects.toThrow("full");
    const { current } = keys.verifierKeys("default");
    expect((await open()).verifierKeys("default").current).toBe(current);
  });

  test("that had reached the disk when the process died is completed by the next start", async () => {
    const keys = await open();
    const oldFile = readFileSync(file());
    await keys.rotate(
      () => [1],
      async () => {},
    );
    const { current } = keys.verifierKeys("default");
    renameSync(file(), file("ledger.key.next"));
    writeFileSync(file(), oldFile, { mode: 0o600 });
    const next = await open();
    expect(next.verifierKeys("default").current).toBe(current);
    expect(await signersNow(next, [current])).toEqual([0]);
    expect(existsSync(file("ledger.key.next"))).toBe(false);
  });
});

describe("a lost key", () => {
  const replacing = () => openLedgerKeys({ ...parts(), replaceLost: true });

  test("is replaced on request, and until then stored heads are checked against the old one", async () => {
    const before = (await open()).verifierKeys("default").current;
    rmSync(file());
    const keys = await replacing();
    expect(keys.isReplacing).toBe(true);
    expect(keys.headKey).toEqual(parseVerifierKey(sha256, before).publicKey);
    await db.tx(1, (tx) => keys.replaceLost(tx));
    expect(keys.isReplacing).toBe(false);
    const { current, former } = keys.verifierKeys("default");
    expect(current).not.toBe(before);
    expect(keys.headKey).toEqual(parseVerifierKey(sha256, current).publicKey);
    expect(former).toEqual([before]);
    expect((await open()).verifierKeys("default")).toEqual({ current, former });
  });

  test("whose replacement was never written is still missing, and is replaced the next time", async () => {
    const before = (await open()).verifierKeys("default").current;
    rmSync(file());
    await replacing();
    await expect(open()).rejects.toThrow(/ledger\.key is missing/);
    const keys = await replacing();
    await db.tx(1, (tx) => keys.replaceLost(tx));
    expect((await open()).verifierKeys("default").former).toEqual([before]);
    expect(existsSync(file("ledger.key.next"))).toBe(false);
  });

  test.each(["unmarked", "marked"])(
    "is not replaced while another key's file exists (%s): the database's keys were changed",
    async (mark) => {
      const keys = await open();
      if (mark === "marked") await keys.markSigned();
      const content = readFileSync(file(), "utf8");
      const stranger = testSigner("stranger", 1).publicKey;
      await db.run("INSERT INTO ledger_keys (public_key, created_at) VALUES ($1, 0)", [stranger]);
      for (const opened of [open(), replacing()]) {
        const failed = await opened.catch((error: unknown) => error);
        expect(failed).toBeInstanceOf(OperatorError);
        expect(failed).toMatchObject({
          message: expect.stringContaining("somebody has changed the database's keys"),
          hint: expect.not.stringContaining("--lost"),
        });
      }
      expect(readFileSync(file(), "utf8")).toBe(content);
    },
  );

  test("is not replaced if it exists", async () => {
    const before = (await open()).verifierKeys("default").current;
    expect((await replacing()).isReplacing).toBe(false);
    expect((await open()).verifierKeys("default").current).toBe(before);
  });
});

test("the file records that heads were signed, and so does the next key's", async () => {
  const keys = await open();
  expect([keys.use, (await open()).use]).toEqual(["none", "none"]);
  await keys.markSigned();
  expect([keys.use, (await open()).use]).toEqual(["node_head", "node_head"]);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect((await open()).verifierKeys("default")).toEqual(keys.verifierKeys("default"));
  await keys.rotate(
    () => [1],
    async () => {},
  );
  expect((await open()).use).toBe("node_head");
});

test("a key file that cannot be marked causes a warning at each start, but no failure", async () => {
  const warnings: string[] = [];
  const start = async () => {
    await db.close();
    db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
    return openChains({
      ...parts(),
      log: { warn: (message) => void warnings.push(message) },
      workspaces: () => [],
      nameOf: () => "default",
    });
  };
  await open();
  // A directory takes the new key file's place, so not even root can write that file.
  mkdirSync(file("ledger.key.new"));
  await start();
  const before = readFileSync(file(), "utf8");
  expect((await start()).keys.use).toBe("none");
  expect(warnings).toHaveLength(2);
  expect(warnings[0]).toContain("could remove the signed heads");
  expect(readFileSync(file(), "utf8")).toBe(before);
  rmSync(file("ledger.key.new"), { recursive: true });
  expect((await start()).keys.use).toBe("node_head");
  expect(warnings).toHaveLength(2);
});

/** Both places of the signing key: a file of the data directory, and a store that several nodes share. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/base/errors.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { nodeHeadStore } from "../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../src/ledger/keys/file.ts";
import { openLedgerKeys } from "../../src/ledger/keys/keys.ts";
import { SealedSigningKey } from "../../src/ledger/keys/sealed.ts";
import type { SigningKeyStore } from "../../src/ledger/keys/signing-key.ts";
import { openChains } from "../../src/ledger/open-chains.ts";
import type { Db } from "../../src/store/db.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { tempDir } from "../support/process.ts";
import { createSealedKeysTable, sealedKeys } from "../support/sealed-keys.ts";
import { SEALS } from "../support/seals.ts";

interface Place {
  readonly name: string;
  open(): Promise<SigningKeyStore>;
  /** Everything that is kept, to be put back later. */
  take(): Promise<unknown>;
  /** Puts back what `take` returned. */
  put(taken: unknown): Promise<void>;
  lose(): Promise<void>;
  damage(): Promise<void>;
}

interface SealedRow {
  readonly id: string;
  readonly sealed: Uint8Array;
}

let directory: ReturnType<typeof tempDir>;
let db: SqliteDb;
const clock = new FakeClock();
const keyFile = () => join(directory.path, "ledger.key");

beforeEach(async () => {
  directory = tempDir();
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
  await createSealedKeysTable(db);
});
afterEach(async () => {
  await db.close();
  directory.remove();
});

const FILE: Place = {
  name: "a file",
  open: async () => new SigningKeyFile(directory.path),
  take: async () => readFileSync(keyFile()),
  put: async (taken) => writeFileSync(keyFile(), taken as Buffer, { mode: 0o600 }),
  lose: async () => rmSync(keyFile()),
  damage: async () => writeFileSync(keyFile(), readFileSync(keyFile(), "latin1").replace("MC4C", "MC5C")),
};

const STORE: Place = {
  name: "the store",
  open: async () => new SealedSigningKey(db, await sealedKeys(db)),
  take: () => db.get<SealedRow>("SELECT id, sealed FROM sealed_keys WHERE purpose = 'ledger'"),
  async put(taken) {
    const { id, sealed } = taken as SealedRow;
    await db.run("UPDATE sealed_keys SET id = $1, sealed = $2 WHERE purpose = 'ledger'", [id, sealed]);
  },
  lose: async () => void (await db.run("DELETE FROM sealed_keys WHERE purpose = 'ledger'")),
  async damage() {
    await db.run("UPDATE sealed_keys SET sealed = substr(sealed, 1, 60) WHERE purpose = 'ledger'");
  },
};

describe.each([
  [FILE.name, FILE],
  [STORE.name, STORE],
])("in %s,", (_, place) => {
  const open = async (changes: { db?: Db; keyStore?: SigningKeyStore; replaceLost?: boolean } = {}) =>
    openLedgerKeys({
      db,
      headStore: nodeHeadStore,
      keyStore: await place.open(),
      clock,
      random: systemRandom,
      ...changes,
    });
  const verifierKeys = async () => (await open()).verifierKeys("default");

  test("a lost key is refused until the operator asks for a new one", async () => {
    const before = await verifierKeys();
    await place.lose();
    await expect(open()).rejects.toMatchObject({
      name: new OperatorError("").name,
      message: expect.stringContaining("is missing"),
      hint: expect.stringContaining("rotate-key --lost"),
    });
    const keys = await open({ replaceLost: true });
    await db.tx(null, (tx) => keys.replaceLost(tx));
    await keys.markSigned();
    expect(await verifierKeys()).toEqual({
      current: keys.verifierKeys("default").current,
      former: [before.current],
    });
    expect((await open()).use).toBe("node_head");
  });

  test("a damaged key is refused, even if the operator asks for a new one", async () => {
    await open();
    await place.damage();
    for (const replaceLost of [false, true]) {
      await expect(open({ replaceLost })).rejects.toMatchObject({ hint: expect.stringContaining("restore") });
    }
  });

  test("an earlier key is refused: it is not the one in force", async () => {
    const keys = await open();
    const earlier = await place.take();
    await keys.rotate(
      () => [],
      async () => {},
    );
    await place.put(earlier);
    for (const replaceLost of [false, true]) {
      await expect(open({ replaceLost })).rejects.toMatchObject({
        message: expect.stringContaining("is not the one in force"),
        hint: expect.not.stringContaining("--lost"),
      });
    }
  });

  test("keys whose public keys were removed from the database are refused once heads are signed", async () => {
    await openChains({
      ...{
        db,
        headStore: nodeHeadStore,
        keyStore: await place.open(),
        clock,
        random: systemRandom,
        log: { warn() {} },
      },
      ...{ workspaces: () => [], nameOf: () => "default" },
    });
    await db.run("INSERT INTO workspaces (name, created_at) VALUES ('default', 0)");
    await db.run("INSERT INTO ledger_heads (workspace_id, note) SELECT id, '' FROM workspaces");
    await db.run("DELETE FROM ledger_keys");
    await expect(open()).rejects.toThrow("the rows of `ledger_keys` were removed");
  });

  test("the first start creates the key, and each later start finds it", async () => {
    const created = await verifierKeys();
    expect(created.former).toEqual([]);
    expect(await verifierKeys()).toEqual(created);
  });

  test("a first start that died before its transaction leaves nothing that keeps the next one from starting", async () => {
    const dying = Object.assign(Object.create(db) as SqliteDb, {
      tx: () => Promise.reject(new Error("died")),
    });
    await expect(open({ db: dying })).rejects.toThrow("died");
    expect((await verifierKeys()).former).toEqual([]);
  });

  test("a rotation that is committed replaces the key", async () => {
    const keys = await open();
    const before = keys.verifierKeys("default").current;
    await keys.rotate(
      () => [],
      async () => {},
    );
    const { current } = keys.verifierKeys("default");
    expect(current).not.toBe(before);
    expect(await verifierKeys()).toEqual({ current, former: [before] });
  });

  test("a rotation that is rolled back changes nothing", async () => {
    const keys = await open();
    const before = keys.verifierKeys("default");
    await expect(
      keys.rotate(
        () => [],
        () => Promise.reject(new Error("full")),
      ),
    ).rejects.toThrow("full");
    expect(keys.verifierKeys("default")).toEqual(before);
    expect(await verifierKeys()).toEqual(before);
    await keys.rotate(
      () => [],
      async () => {},
    );
    expect((await verifierKeys()).former).toEqual([before.current]);
  });

  test("a rotation whose process dies right after the commit is completed by the next start", async () => {
    const keyStore = await place.open();
    const { replacement } = keyStore;
    const died = new Error("died");
    keyStore.replacement = async (...args) => ({
      ...(await replacement.apply(keyStore, args)),
      complete() {
        throw died;
      },
    });
    const keys = await open({ keyStore });
    const before = keys.verifierKeys("default").current;
    await expect(
      keys.rotate(
        () => [],
        async () => {},
      ),
    ).rejects.toBe(died);
    const { current } = keys.verifierKeys("default");
    expect(await verifierKeys()).toEqual({ current, former: [before] });
  });

  test("the mark of signed heads is kept, and passed on to the next key", async () => {
    const keys = await open();
    expect((await open()).use).toBe("none");
    await keys.markSigned();
    expect((await open()).use).toBe("node_head");
    await keys.rotate(
      () => [],
      async () => {},
    );
    expect((await open()).use).toBe("node_head");
  });
});

describe("in the store,", () => {
  const open = async (random = systemRandom) =>
    openLedgerKeys({ db, headStore: nodeHeadStore, keyStore: await STORE.open(), clock, random });

  test("two first starts at once create one key", async () => {
    const [one, other] = await Promise.all([open(), open()]);
    expect(one.verifierKeys("default")).toEqual(other.verifierKeys("default"));
    expect(await db.all("SELECT 1 FROM ledger_keys")).toHaveLength(1);
    expect(one.instance).toBe(other.instance);
  });

  test("a row from before the mark is not believed once there are entries", async () => {
    const keys = await open();
    const unmarked = await STORE.take();
    await keys.markSigned();
    await db.run("INSERT INTO workspaces (name, created_at) VALUES ('default', 0)");
    await db.run(
      "INSERT INTO ledger (workspace_id, seq, prev, leaf, bytes) SELECT id, 1, zeroblob(32), zeroblob(32), '{}' FROM workspaces",
    );
    await STORE.put(unmarked);
    expect((await open()).use).toBe("node_head");
  });

  test("the key that another node has replaced is neither replaced nor marked", async () => {
    const [one, other] = [await open(), await open()];
    await one.markSigned();
    await one.rotate(
      () => [],
      async () => {},
    );
    const { current, former } = one.verifierKeys("default");
    await expect(
      other.rotate(
        () => [],
        async () => {},
      ),
    ).rejects.toThrow("another node has replaced the signing key");
    await other.markSigned();
    const now = await open();
    expect(now.verifierKeys("default")).toEqual({ current, former });
    expect(now.use).toBe("node_head");
  });

  test("a start during another node's rotation is refused, and not mistaken for a change by others", async () => {
    const keys = await open();
    const keyStore = await STORE.open();
    const { readInForce } = keyStore;
    keyStore.readInForce = async (publicKey) => {
      await keys.rotate(
        () => [],
        async () => {},
      );
      return readInForce.call(keyStore, publicKey);
    };
    await expect(
      openLedgerKeys({ db, headStore: nodeHeadStore, keyStore, clock, random: systemRandom }),
    ).rejects.toMatchObject({
      message: "another node has just replaced the signing key",
      hint: "start again",
    });
  });
});

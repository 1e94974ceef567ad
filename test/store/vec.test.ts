/** sqlite-vec from the data directory, and its tables as vectors are added and removed. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { getLoadablePath } from "sqlite-vec";
import type { SqliteDb } from "../../src/store/sqlite/open.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ownSpaces } from "../../src/vault/rows/space-locks.ts";
import { type Space, Spaces } from "../../src/vault/rows/spaces.ts";
import { BLOCK, insertVector, moveVectors, sparsePassages, vec0Vectors } from "../../src/vault/rows/vec0.ts";
import { seeded } from "../faults/support.ts";
import { FakeClock } from "../support/clock.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";

let directory: ReturnType<typeof tempDir>;
const opened: SqliteDb[] = [];

beforeEach(() => {
  directory = tempDir();
});

afterEach(async () => {
  for (const db of opened.splice(0)) await db.close();
  directory.remove();
});

function open(libraries = directory.path): SqliteDb {
  const db = openSqlite(join(directory.path, "gatehouse.db"), { libraries, seals: SEALS });
  opened.push(db);
  return db;
}

const libraries = () => readdirSync(directory.path).filter((name) => name.startsWith("vec0"));
const original = readFileSync(getLoadablePath());

describe("the library", () => {
  test("is written once, for its owner only, and loaded into both connections", async () => {
    const db = open();
    expect(db.vectors.problem).toBeNull();
    const [name = "", ...others] = libraries();
    expect(others).toEqual([]);
    const { mode, mtimeMs } = lstatSync(join(directory.path, name));
    expect(mode & 0o777).toBe(0o500);
    expect(await db.get("SELECT vec_version() AS v")).toEqual({ v: "v0.1.9" });
    expect(await db.tx(1, (tx) => tx.get("SELECT vec_version() AS v"))).toEqual({ v: "v0.1.9" });
    open();
    expect(lstatSync(join(directory.path, name)).mtimeMs).toBe(mtimeMs);
  });

  test.each([
    ["another file", (path: string) => writeFileSync(path, "no library")],
    ["an empty file", (path: string) => writeFileSync(path, "")],
    ["the library, for all to write", (path: string) => writeAs(path, 0o777)],
    ["a link to one that others may change", (path: string) => link(path)],
  ])("replaces %s with its name", async (_, tamper) => {
    open();
    const path = join(directory.path, libraries()[0] ?? "");
    await opened.pop()?.close();
    // Remove it rather than overwrite it, because this process still has it mapped.
    rmSync(path);
    tamper(path);
    expect(open().vectors).toEqual({ path, problem: null });
    const { mode } = lstatSync(path);
    expect(mode & 0o170_777).toBe(0o100_500);
    expect(Buffer.compare(readFileSync(path), original)).toBe(0);
    expect(libraries()).toHaveLength(1);
  });

  test("is not written over a dead process's half-written file", () => {
    const hash = new Bun.CryptoHasher("sha256").update(original).digest("hex").slice(0, 16);
    writeFileSync(join(directory.path, `vec0-${hash}.so.${process.pid}`), "half");
    expect(open().vectors.problem).toBeNull();
    expect(libraries()).toEqual([`vec0-${hash}.so`]);
  });

  test("names the folder that it cannot write to, and words can still be searched", async () => {
    writeFileSync(join(directory.path, "file"), "");
    const db = open(join(directory.path, "file"));
    expect(db.vectors.path).toBeNull();
    expect(db.vectors.problem).toContain(`cannot be written to ${join(directory.path, "file")}: ENOTDIR`);
    expect(await db.get("SELECT count(*) AS n FROM vault_chunks")).toEqual({ n: 0 });
  });

  test("leaves nothing behind if a folder already has its name", () => {
    const hash = new Bun.CryptoHasher("sha256").update(original).digest("hex").slice(0, 16);
    mkdirSync(join(directory.path, `vec0-${hash}.so`));
    expect(open().vectors.problem).toContain("cannot be written");
    expect(libraries()).toEqual([`vec0-${hash}.so`]);
  });
});

function writeAs(path: string, mode: number): void {
  writeFileSync(path, original);
  chmodSync(path, mode);
}

function link(path: string): void {
  const elsewhere = join(directory.path, "elsewhere.so");
  copyFileSync(getLoadablePath(), elsewhere);
  chmodSync(elsewhere, 0o777);
  symlinkSync(elsewhere, path);
}

const DIMENSIONS = 8;

describe("a partition of vectors", () => {
  let db: SqliteDb;
  let spaces: Spaces;
  let space: Space;
  const random = seeded(7);
  /** The table's contents as far as this test knows. */
  let known: Map<number, { scope: number; vector: Float32Array }>;
  let next = 1;

  beforeEach(async () => {
    db = open();
    spaces = new Spaces({ db, clock: new FakeClock(), vectors: vec0Vectors(true), locks: ownSpaces });
    await spaces.open("test|unit|none", DIMENSIONS);
    space = spaces.active as Space;
    known = new Map();
    next = 1;
  });

  async function add(count: number, scope = 1): Promise<number[]> {
    const keys: number[] = [];
    await db.tx(1, async (tx) => {
      for (let n = 0; n < count; n++) {
        const vector = Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5);
        const key = next++;
        insertVector(tx, space, scope, key, vector);
        known.set(key, { scope, vector });
        keys.push(key);
      }
    });
    return keys;
  }

  async function drop(keys: readonly number[]): Promise<void> {
    await db.tx(1, async (tx) => {
      for (const key of keys) {
        await tx.run("DELETE FROM vault_vectors_1 WHERE passage = $1", [key]);
        known.delete(key);
      }
    });
  }

  async function blocks(scope = 1): Promise<number> {
    const row = await db.get<{ n: number }>(
      "SELECT count(*) AS n FROM vault_vectors_1_chunks WHERE partition00 = $1",
      [scope],
    );
    return row?.n ?? -1;
  }

  /**
   * Checks that exactly the known vectors exist, with their bytes and scopes, and that searches answer as without an
   * index.
   */
  async function expectWhole(): Promise<void> {
    const rows = await db.all<{ passage: number; scope: number; embedding: Uint8Array }>(
      "SELECT passage, scope, embedding FROM vault_vectors_1 ORDER BY passage",
    );
    expect(rows.map(({ passage }) => passage)).toEqual([...known.keys()].sort((a, b) => a - b));
    for (const { passage, scope, embedding } of rows) {
      const there = known.get(passage);
      expect(scope).toBe(there?.scope ?? -1);
      expect([...new Float32Array(embedding.slice().buffer)]).toEqual([...(there?.vector ?? [])]);
    }
    const question = Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5);
    const nearest = await db.all<{ passage: number }>(
      "SELECT passage FROM vault_vectors_1 WHERE embedding MATCH $1 AND k = 10 AND scope = 1 ORDER BY distance",
      [new Uint8Array(question.buffer.slice(0))],
    );
    const expected = [...known]
      .filter(([, { scope }]) => scope === 1)
      .map(([key, { vector }]) => ({ key, near: cosine(question, vector) }))
      .sort((a, b) => b.near - a.near)
      .slice(0, 10);
    expect(nearest.map(({ passage }) => passage)).toEqual(expected.map(({ key }) => key));
  }

  async function tidy(): Promise<number> {
    const sparse = await sparsePassages(db, space, 1);
    for (let from = 0; from < sparse.length; from += 32) {
      await db.tx(1, (tx) => moveVectors(tx, space, 1, sparse.slice(from, from + 32)));
    }
    return sparse.length;
  }

  test("frees a block with its last vector, but fills none except the newest", async () => {
    const keys = await add(BLOCK * 10);
    await drop(keys.filter((_, index) => index % BLOCK !== 0));
    expect(await blocks()).toBe(10);
    await add(BLOCK - 1);
    expect(await blocks()).toBe(10);
    await add(1);
    expect(await blocks()).toBe(11);
    await drop(keys);
    expect(await blocks()).toBe(1 + 1);
  });

  test("is compacted when more than half of its slots are free, and only then", async () => {
    const keys = await add(BLOCK * 40);
    await add(50, 2);
    await drop(keys.filter((_, index) => index % 2 === 1));
    expect(await tidy()).toBe(0);
    await drop(keys.filter((_, index) => index % 16 !== 0));
    expect(await blocks()).toBe(40);
    expect(await tidy()).toBe(39 * (BLOCK / 16));
    expect(await blocks()).toBe(3);
    await expectWhole();
    expect(await tidy()).toBe(0);
  });

  test("stays bounded and complete over many rounds of adding and removing", async () => {
    let live: number[] = [];
    for (let round = 0; round < 60; round++) {
      live.push(...(await add(40)));
      const gone = live.filter(() => random() < 0.5);
      await drop(gone);
      live = live.filter((key) => !gone.includes(key));
      await tidy();
      expect((await blocks()) * BLOCK).toBeLessThanOrEqual(2 * live.length + 2 * BLOCK);
    }
    await expectWhole();
  });

  test("does not get back vectors deleted while it is compacted", async () => {
    const keys = await add(BLOCK * 8);
    await drop(keys.filter((_, index) => index % 16 !== 0));
    const sparse = await sparsePassages(db, space, 1);
    await drop(sparse.slice(0, 5));
    await db.tx(1, (tx) => moveVectors(tx, space, 1, sparse));
    await expectWhole();
  });
});

function cosine(left: Float32Array, right: Float32Array): number {
  const dot = (a: Float32Array, b: Float32Array) =>
    a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
  return dot(left, right) / Math.sqrt(dot(left, left) * dot(right, right));
}

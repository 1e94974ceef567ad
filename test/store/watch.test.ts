/**
 * What others do to the open database and its files is noticed, reported once, and never confused with our own work.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { StoreUnavailable } from "../../src/store/db.ts";
import type { StoreFile } from "../../src/store/file-store.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { outcomes } from "./support.ts";

let directory: ReturnType<typeof tempDir>;
let folder: string;
let path: string;
let db: SqliteDb;

beforeEach(async () => {
  directory = tempDir();
  folder = join(directory.path, "data");
  mkdirSync(folder);
  path = join(folder, "gatehouse.db");
  db = openSqlite(path, { seals: SEALS });
  await write("first");
});

afterEach(async () => {
  await db.close();
  directory.remove();
});

const write = (value: string) =>
  db.run("INSERT INTO meta (key, value) VALUES ('test', $1) ON CONFLICT (key) DO UPDATE SET value = $1", [
    value,
  ]);

const value = async (from: Pick<SqliteDb, "get"> = db) =>
  (await from.get<{ value: string }>("SELECT value FROM meta WHERE key = 'test'"))?.value;

/** Works on the file as another program would, with a separate connection. */
function foreign(work: (database: Database) => void): void {
  const database = new Database(path);
  try {
    work(database);
  } finally {
    database.close();
  }
}

const away = () => join(directory.path, "away");

const FOREIGN_INSERT = "INSERT INTO meta (key, value) VALUES ('foreign', hex(randomblob(8)))";

/**
 * Runs SQL on the file in another process.
 * @returns `done`, or the error's code
 */
async function elsewhere(sql: string): Promise<string> {
  const program = `
    import { Database } from "bun:sqlite";
    const database = new Database(process.argv[1]);
    try {
      database.exec(process.argv[2]);
      console.log("done");
    } catch (error) { console.log(error.code) }
    // Without this, the ending process would write the log back.
    database.close(true);`;
  const child = Bun.spawn([process.execPath, "-e", program, "--", path, sql], { stdout: "pipe" });
  await child.exited;
  return (await new Response(child.stdout).text()).trim();
}

describe("our own work is not a disturbance", () => {
  const own: Readonly<Record<string, () => Promise<unknown>>> = {
    write: () => write(String(Math.random())),
    "write in parallel": () => Promise.all([write("a"), write("b"), value()]),
    read: () => value(),
    refused: () => outcomes([db.tx(1, (tx) => tx.run("INSERT INTO meta (key) VALUES (NULL)"))]),
    "rolled back": () =>
      outcomes([
        db.tx(1, async (tx) => {
          await tx.run("DELETE FROM meta");
          throw new Error("no");
        }),
      ]),
    "on a full disk": async () => {
      const pages = await db.tx(1, (tx) => tx.get<{ page_count: number }>("PRAGMA page_count"));
      await db.tx(1, (tx) => tx.get(`PRAGMA max_page_count = ${pages?.page_count}`));
      await outcomes([write("x".repeat(1_000_000))]);
      await db.tx(1, (tx) => tx.get("PRAGMA max_page_count = 1000000"));
    },
    "empty the log": () => db.forget(),
    "write anew": () => db.rewrite(1 << 30),
    "read by another connection": async () => {
      const reader = new Database(path, { readonly: true });
      reader.query("SELECT * FROM meta").all();
      reader.close();
    },
    look: () => db.disturbances(),
  };

  test("whatever it is, in whatever order", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...Object.keys(own)), { minLength: 1, maxLength: 12 }),
        async (steps) => {
          for (const step of steps) await own[step]?.();
          expect(await db.disturbances()).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe("another connection's commit", () => {
  test.each([
    ["a row", FOREIGN_INSERT],
    ["a trigger", "CREATE TRIGGER mine BEFORE DELETE ON ledger BEGIN SELECT 1; END"],
    ["a setting in the file", "PRAGMA user_version = 7"],
    ["the emptying of the log", "PRAGMA wal_checkpoint(TRUNCATE)"],
  ])("is seen once: %s", async (_, sql) => {
    foreign((database) => database.exec(sql));
    expect(await db.disturbances()).toEqual([{ kind: "foreign_write", commits: 1 }]);
    expect(await db.disturbances()).toEqual([]);
    expect(await outcomes([write("later")])).toEqual(["StoreUnavailable"]);
    expect(await db.disturbances()).toEqual([]);
  });

  test("is seen from another process as well", async () => {
    expect(await elsewhere(FOREIGN_INSERT)).toBe("done");
    expect(await db.disturbances()).toEqual([{ kind: "foreign_write", commits: 1 }]);
  });

  test("is seen between two of our own transactions, each time", async () => {
    for (let times = 0; times < 3; times++) {
      foreign((database) => database.exec(`UPDATE meta SET value = '${times}' WHERE key = 'ready'`));
      await db.tx(1, (tx) => tx.get("SELECT 1"), { whileRefused: true });
    }
    expect(await db.disturbances()).toEqual([{ kind: "foreign_write", commits: 3 }]);
  });

  test("is refused by the first transaction after it, even if it was made earlier, and by all others", async () => {
    const waiting = write("before");
    foreign((database) => database.exec(FOREIGN_INSERT));
    expect(await outcomes([waiting, write("second"), db.tx(1, async () => 1)])).toEqual(
      Array(3).fill("StoreUnavailable"),
    );
    await expect(write("third")).rejects.toThrow("another program has written to the database");
    expect(await value()).toBe("first");
    expect(await db.disturbances()).toHaveLength(1);
    await expect(write("fourth")).rejects.toThrow(StoreUnavailable);
    await db.close();
    db = openSqlite(path, { seals: SEALS });
    expect(await write("fifth")).toBe(1);
  });

  test("is still refused when a file that was moved is in its place again", async () => {
    foreign((database) => database.exec(FOREIGN_INSERT));
    renameSync(path, away());
    await db.disturbances();
    renameSync(away(), path);
    await db.disturbances();
    await expect(write("second")).rejects.toThrow("another program has written to the database");
  });

  test("does not keep the store from recording it", async () => {
    foreign((database) => database.exec(FOREIGN_INSERT));
    await db.tx(1, (tx) => tx.run("UPDATE meta SET value = 'last words' WHERE key = 'test'"), {
      whileRefused: true,
    });
    expect(await value()).toBe("last words");
    expect(await outcomes([write("second")])).toEqual(["StoreUnavailable"]);
  });

  test.each([
    ["reads", "SELECT * FROM meta"],
    ["makes a backup", "VACUUM INTO 'BACKUP'"],
    ["writes back the log, and leaves it", "PRAGMA wal_checkpoint(PASSIVE)"],
    ["rolls its changes back", `BEGIN IMMEDIATE; ${FOREIGN_INSERT}; ROLLBACK`],
  ])("does not count if it %s", async (_, sql) => {
    foreign((database) => database.exec(sql.replace("BACKUP", join(directory.path, "backup"))));
    for (let again = 0; again < 2; again++) expect(await write(`later ${again}`)).toBe(1);
    expect(await db.disturbances()).toEqual([]);
  });
});

const moved = (file: string, change: string) => ({ kind: "file_moved", file, change });

/** A change to the files, and how to undo it if that is possible. */
interface Move {
  readonly name: string;
  readonly file: StoreFile;
  readonly change: string;
  readonly isLost?: true;
  /** Another program may have written unnoticed, so only a start may write again. */
  readonly isFinal?: true;
  do(): void;
  undo?(): void;
}

const there = () => `${path}-wal`;
const index = () => `${path}-shm`;
const MOVES: readonly Move[] = [
  {
    name: "moved",
    file: "database",
    change: "moved",
    do: () => renameSync(path, away()),
    undo: () => renameSync(away(), path),
  },
  {
    name: "moved with its folder",
    file: "database",
    change: "moved",
    do: () => renameSync(folder, away()),
    undo: () => renameSync(away(), folder),
  },
  {
    name: "in a folder replaced by a file",
    file: "database",
    change: "moved",
    do() {
      renameSync(folder, away());
      writeFileSync(folder, "");
    },
    undo() {
      unlinkSync(folder);
      renameSync(away(), folder);
    },
  },
  {
    name: "moved, and copied back",
    file: "database",
    change: "replaced",
    do() {
      renameSync(path, away());
      copyFileSync(away(), path);
    },
    undo: () => renameSync(away(), path),
  },
  {
    name: "deleted, while another link is left",
    file: "database",
    change: "moved",
    do() {
      linkSync(path, away());
      unlinkSync(path);
    },
    undo: () => linkSync(away(), path),
  },
  { name: "deleted", file: "database", change: "deleted", isLost: true, do: () => unlinkSync(path) },
  {
    name: "replaced",
    file: "database",
    change: "replaced",
    isLost: true,
    do() {
      copyFileSync(path, away());
      renameSync(away(), path);
    },
  },
  {
    name: "left without its log, moved",
    file: "log",
    change: "moved",
    do: () => renameSync(there(), away()),
    undo: () => renameSync(away(), there()),
  },
  {
    name: "left without its log, deleted",
    file: "log",
    change: "deleted",
    do: () => unlinkSync(there()),
  },
  {
    name: "left without its log's index, moved",
    file: "index",
    change: "moved",
    isFinal: true,
    do: () => renameSync(index(), away()),
    undo: () => renameSync(away(), index()),
  },
  {
    name: "left without its log's index, replaced",
    file: "index",
    change: "replaced",
    isFinal: true,
    do() {
      renameSync(index(), away());
      copyFileSync(away(), index());
    },
    undo: () => renameSync(away(), index()),
  },
  {
    name: "left without its log's index, deleted",
    file: "index",
    change: "deleted",
    isFinal: true,
    do: () => unlinkSync(index()),
  },
];

describe.each(MOVES)("a database that was $name", ({ file, change, isLost, isFinal, do: move, undo }) => {
  test("accepts nothing more, still answers, and reports it once", async () => {
    move();
    const [first, ...others] = await db.disturbances();
    expect(first).toEqual(moved(file, change) as never);
    // Moving the folder moves all files.
    for (const other of others)
      expect(other).toMatchObject({ kind: "file_moved", file: expect.stringMatching(/^(?:log|index)$/) });
    expect(await db.disturbances()).toEqual([]);
    expect(await outcomes([write("second"), db.tx(1, async () => 1)])).toEqual([
      "StoreUnavailable",
      "StoreUnavailable",
    ]);
    expect(await value()).toBe("first");
  });

  test("is refused by the first transaction after it, before anybody looks", async () => {
    move();
    expect(await outcomes([write("second")])).toEqual(["StoreUnavailable"]);
    expect(await db.disturbances()).toContainEqual(moved(file, change) as never);
    expect(db.mustReopen).toBe(isFinal ? "foreign_write" : null);
  });

  test(`still records it${isLost || isFinal ? " no more: nobody would find it, or the file would be damaged" : ""}`, async () => {
    move();
    await db.disturbances();
    const evidence = db.tx(1, (tx) => tx.run("UPDATE meta SET value = 'last words' WHERE key = 'test'"), {
      whileRefused: true,
    });
    const isRefused = isLost || isFinal;
    expect(await outcomes([evidence])).toEqual([isRefused ? "StoreUnavailable" : 1]);
    expect(await value()).toBe(isRefused ? "first" : "last words");
  });

  if (undo && isFinal) {
    test("accepts nothing when it is back in its place, until it is opened again", async () => {
      move();
      await db.disturbances();
      undo();
      expect(await db.disturbances()).toContainEqual(moved(file, "returned") as never);
      await expect(write("second")).rejects.toThrow("another program may have written to the database");
      expect(db.mustReopen).toBe("foreign_write");
      await db.close();
      db = openSqlite(path, { seals: SEALS });
      expect(await write("third")).toBe(1);
    });
  } else if (undo) {
    test("continues when it is back in its place", async () => {
      move();
      await db.disturbances();
      undo();
      expect(await db.disturbances()).toContainEqual(moved(file, "returned") as never);
      expect(await write("second")).toBe(1);
      expect(await db.disturbances()).toEqual([]);
    });
  }
});

test("the last commit is in the moved file once its log is emptied", async () => {
  renameSync(path, away());
  await db.disturbances();
  await db.tx(1, (tx) => tx.run("UPDATE meta SET value = 'last words' WHERE key = 'test'"), {
    whileRefused: true,
  });
  expect(await db.forget()).toBe(true);
  copyFileSync(away(), join(directory.path, "alone"));
  const alone = new Database(join(directory.path, "alone"));
  expect(alone.query("SELECT value FROM meta WHERE key = 'test'").get()).toEqual({ value: "last words" });
  alone.close();
});

test("closing removes no log of another database that took its place", async () => {
  await db.forget();
  const other = join(directory.path, "other");
  copyFileSync(path, other);
  renameSync(other, path);
  writeFileSync(`${directory.path}/log`, "another's");
  renameSync(`${directory.path}/log`, there());
  await db.close();
  expect(existsSync(there())).toBe(true);
  unlinkSync(there());
  db = openSqlite(path, { seals: SEALS });
});

test("checking keeps SQLite's locks: no other process can have the file to itself", async () => {
  for (let looks = 0; looks < 3; looks++) await db.disturbances();
  expect(await elsewhere("PRAGMA locking_mode = EXCLUSIVE; SELECT * FROM meta")).toBe("SQLITE_BUSY");
  expect(await db.disturbances()).toEqual([]);
  await write("second");
  expect(await value()).toBe("second");
});

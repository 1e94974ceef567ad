/**
 * A start opens exactly the files that it watches, and notices what others commit from then on, even while it
 * compares rows.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/base/errors.ts";
import { openReader, openWriter } from "../../src/store/sqlite/connection.ts";
import { TASK_MESSAGES } from "../../src/store/sqlite/migrations/019-task-messages.ts";
import { versionOf } from "../../src/store/sqlite/migrations/index.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { dataVersionOf, StoreWatch } from "../../src/store/sqlite/watch.ts";
import { WatchedFile } from "../../src/store/sqlite/watched-file.ts";
import { WITHOUT_TASK_MESSAGES } from "../support/older-schema.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { outcomes } from "./support.ts";

let directory: ReturnType<typeof tempDir>;
let path: string;
let away: string;
let db: SqliteDb;

beforeEach(async () => {
  directory = tempDir();
  path = join(directory.path, "gatehouse.db");
  away = join(directory.path, "away");
  db = openSqlite(path, { seals: SEALS });
  await db.run("INSERT INTO meta (key, value) VALUES ('test', 'first')");
});

afterEach(async () => {
  await db.close();
  directory.remove();
});

const value = async () =>
  (await db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'test'"))?.value;

/** Commits as another program would, with a connection of its own. @returns the error's code, or `done` */
function commitElsewhere(): string {
  using other = new Database(path);
  try {
    other.exec("UPDATE meta SET value = hex(randomblob(8)) WHERE key = 'test'");
    return "done";
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}

describe("a start is refused if another file had the name for a moment", () => {
  const REPLACED = /file .* was replaced while it was being opened/;

  /** Gives the name to another file while `work` runs. */
  function beneathAnother<Result>(name: string, work: () => Result): Result {
    const other = join(directory.path, "other");
    copyFileSync(name, other);
    renameSync(name, away);
    renameSync(other, name);
    try {
      return work();
    } finally {
      renameSync(name, other);
      renameSync(away, name);
    }
  }

  test.each(["database", "log"] as const)("in which SQLite opened its %s", async (name) => {
    const file = new WatchedFile(name === "log" ? `${path}-wal` : path, name);
    const opened = beneathAnother(name === "log" ? `${path}-wal` : path, () => {
      const connection = name === "log" ? openReader(path) : openWriter(path);
      connection.get("SELECT * FROM meta");
      return connection;
    });
    // Besides this test's watch: the store's watch, its writer and its reader, but not the connection opened here.
    expect(() => file.requireOpenIn(3)).not.toThrow();
    expect(() => file.requireOpenIn(4)).toThrow(REPLACED);
    opened.close();
    await db.close();
    file.close();
    db = openSqlite(path, { seals: SEALS });
  });

  test.each(["", "-wal", "-shm"])("between its writer and its reader: gatehouse.db%s", async (suffix) => {
    await db.close();
    const name = `${path}${suffix}`;
    const acceptRows = () => {
      copyFileSync(name, away);
      renameSync(away, name);
    };
    expect(() => openSqlite(path, { seals: { ...SEALS, acceptRows } })).toThrow(REPLACED);
    db = openSqlite(path, { seals: SEALS });
    expect(await value()).toBe("first");
  });
});

test("a commit by another program while a start compares the rows is noticed", async () => {
  await db.close();
  const committed: string[] = [];
  const key = {
    ...SEALS.key,
    /** Read when the comparison begins. */
    get secret() {
      if (committed.length === 0) committed.push(commitElsewhere());
      return SEALS.key.secret;
    },
  };
  db = openSqlite(path, { seals: { key } });
  expect(committed).toEqual(["done"]);
  expect(await db.disturbances()).toEqual([{ kind: "foreign_write", commits: 1 }]);
  expect(await outcomes([db.run("DELETE FROM meta WHERE key = 'test'")])).toEqual(["StoreUnavailable"]);
});

describe("a commit by another program while a start waits for the write lock", () => {
  /** Holds the lock until the process has opened the log's index, and for a while after. Bun's SQLite refuses `writable_schema`. */
  const HOLD = `
import json, os, sqlite3, sys, time
path, process, statements = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
file = sqlite3.connect(path, isolation_level=None)
file.execute("BEGIN IMMEDIATE")
for statement in statements: file.execute(statement)
print("held", flush=True)
def is_open():
    for name in os.listdir(f"/proc/{process}/fd"):
        try:
            if os.readlink(f"/proc/{process}/fd/{name}").endswith("-shm"): return True
        except OSError: pass
latest = time.time() + 10
while not is_open() and time.time() < latest: time.sleep(0.01)
time.sleep(0.5)
file.execute("COMMIT")
file.close()`;
  const TRIGGER = `CREATE TRIGGER zz AFTER UPDATE OF value ON meta WHEN NEW.key = 'test' AND NEW.value <> 'theirs'
    BEGIN UPDATE meta SET value = 'theirs' WHERE key = 'test'; END`;

  /** Starts while another program holds the lock, after these statements. */
  async function startBeside(statements: readonly string[]): Promise<SqliteDb> {
    const command = ["python3", "-c", HOLD, path, String(process.pid), JSON.stringify(statements)];
    const holder = Bun.spawn(command, { stdout: "pipe", stderr: "inherit" });
    try {
      let printed = "";
      for await (const bytes of holder.stdout) {
        printed += Buffer.from(bytes).toString();
        if (printed.endsWith("\n")) break;
      }
      expect(printed).toBe("held\n");
      return openSqlite(path, { seals: SEALS });
    } finally {
      expect(await holder.exited).toBe(0);
    }
  }

  const edit = (sql: string) => {
    using file = new Database(path);
    file.exec(sql);
  };

  test.each([
    ["of this version", ""],
    [
      "that has to be upgraded",
      `${WITHOUT_TASK_MESSAGES.join(";")}; PRAGMA user_version = ${versionOf(TASK_MESSAGES) - 1}`,
    ],
  ])("is checked: a trigger is refused, in a file %s", async (_, downgrade) => {
    await db.close();
    if (downgrade !== "") edit(downgrade);
    const refused = await startBeside([TRIGGER]).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OperatorError);
    expect(String(refused)).toContain('The trigger "zz" of the table meta');
    edit("DROP TRIGGER zz");
    db = openSqlite(path, { seals: SEALS });
  });

  test("leaves nothing in memory: a trigger that was removed without a trace in the header does not run", async () => {
    await db.close();
    edit(TRIGGER);
    db = await startBeside(["PRAGMA writable_schema = ON", "DELETE FROM sqlite_schema WHERE name = 'zz'"]);
    await db.run("UPDATE meta SET value = 'ours' WHERE key = 'test'");
    expect(await value()).toBe("ours");
    expect(await db.disturbances()).toEqual([]);
  });
});

test("nobody writes between the operator's review of the rows and their seals", async () => {
  await db.close();
  const tried: string[] = [];
  db = openSqlite(path, { seals: { ...SEALS, acceptRows: () => void tried.push(commitElsewhere()) } });
  expect(tried).toEqual(["SQLITE_BUSY"]);
  expect(await value()).toBe("first");
});

test("a foreign commit during our own work is noticed, whether or not the work had the file to itself", async () => {
  await db.close();
  const database = new WatchedFile(path, "database");
  const writer = openWriter(path);
  const files = {
    database,
    log: new WatchedFile(`${path}-wal`, "log"),
    index: new WatchedFile(`${path}-shm`, "index"),
  };
  const watch = new StoreWatch(files, writer, { since: dataVersionOf(writer) });
  const during = (commits: number, work: () => boolean) => {
    watch.own(commits, work);
    return watch.takeCommits().map(({ kind }) => kind);
  };
  const empty = () => writer.get<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)")?.busy === 0;
  const vacuum = () => writer.run("VACUUM") >= 0;
  const commit = () => commitElsewhere() === "done";
  expect([during(0, empty), during(1, vacuum), during(0, empty)]).toEqual([[], [], []]);
  expect(during(0, () => commit() && empty())).toEqual(["foreign_write"]);
  expect(during(0, () => empty() && commit())).toEqual(["foreign_write"]);
  expect(during(1, () => vacuum() && commit())).toEqual(["foreign_write"]);
  expect(during(0, () => !commit())).toEqual(["foreign_write"]);
  expect([commit(), during(0, empty)]).toEqual([true, ["foreign_write"]]);
  writer.close();
  watch.close();
  db = openSqlite(path, { seals: SEALS });
});

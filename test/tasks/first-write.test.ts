/** The first write of a run joins the transaction that stores its task, or comes after it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Tx } from "../../src/store/db.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { FirstWrite, JoinRefused, NotDispatched } from "../../src/tasks/run/first-write.ts";
import { tempDir } from "../support/process.ts";

let dir: ReturnType<typeof tempDir>;
let db: SqliteDb;
let first: FirstWrite;

beforeEach(() => {
  dir = tempDir();
  db = openSqlite(join(dir.path, "test.db"), { rerunWork: true });
  first = new FirstWrite(db);
});
afterEach(async () => {
  await db.close();
  dir.remove();
});

const note = (key: string) => (tx: Tx) => tx.run("INSERT INTO meta (key, value) VALUES ($1, 'x')", [key]);
const keys = async () =>
  (await db.all<{ key: string }>("SELECT key FROM meta WHERE key LIKE 'test/%' ORDER BY key")).map(
    ({ key }) => key,
  );

/** Stores the task, with the run's first write. */
const dispatch = () =>
  db.tx(1, async (tx) => {
    await note("test/task")(tx);
    await first.write(tx);
  });

describe("the first write of a run", () => {
  test("is in the transaction of the dispatch, and ends once that is reported", async () => {
    let ended = false;
    const write = first.db.tx(1, note("test/intent")).finally(() => {
      ended = true;
    });
    await first.ready();
    await dispatch();
    expect(await keys()).toEqual(["test/intent", "test/task"]);
    expect(ended).toBe(false);
    first.stored();
    expect(await write).toBe(1);
  });

  test("fails alone: the dispatch is repeated without it", async () => {
    const write = first.db.tx(1, async (tx) => {
      await note("test/intent")(tx);
      throw new RangeError("too expensive");
    });
    write.catch(() => {});
    await first.ready();
    await expect(dispatch()).rejects.toBeInstanceOf(JoinRefused);
    expect(await keys()).toEqual([]);
    await db.tx(1, note("test/task"));
    first.stored();
    await expect(write).rejects.toThrow(new RangeError("too expensive"));
    expect(await keys()).toEqual(["test/task"]);
  });

  test("is refused if the task is not stored, as are all others", async () => {
    const write = first.db.tx(1, note("test/intent"));
    write.catch(() => {});
    await first.ready();
    first.refused();
    await expect(write).rejects.toBeInstanceOf(NotDispatched);
    await expect(first.db.tx(1, note("test/end"))).rejects.toBeInstanceOf(NotDispatched);
    expect(await first.isStored).toBe(false);
    expect(await keys()).toEqual([]);
  });

  test("comes after the dispatch if it was not ready within a turn", async () => {
    await first.ready();
    const write = first.db.tx(1, note("test/intent"));
    await dispatch();
    expect(await keys()).toEqual(["test/task"]);
    first.stored();
    await write;
    expect(await keys()).toEqual(["test/intent", "test/task"]);
  });
});

test("a second write waits until the task is stored", async () => {
  const writes = [first.db.tx(1, note("test/intent")), first.db.tx(1, note("test/second"))];
  await first.ready();
  await dispatch();
  expect(await keys()).toEqual(["test/intent", "test/task"]);
  first.stored();
  await Promise.all(writes);
  expect(await keys()).toEqual(["test/intent", "test/second", "test/task"]);
});

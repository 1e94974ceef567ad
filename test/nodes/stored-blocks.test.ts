/** Blocks of events that a step and early storing write at the same time. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Db } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { encodeFrame } from "../../src/tasks/events/frames.ts";
import { extendBlock, lastEvent } from "../../src/tasks/events/shared/rows.ts";
import { findBlock, saveEvents, TASK_EVENTS } from "../../src/tasks/events/store.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";

const TASK = { workspaceId: 1, id: "task" };

describe.skipIf(missingPostgres !== undefined)("events that were stored early", () => {
  let database: TestDatabase;
  let db: Db;

  beforeAll(async () => {
    database = await createDatabase();
    db = await openPostgres({ url: database.url });
    // The events of a task that has no row.
    await database.query("ALTER TABLE task_events DISABLE TRIGGER ALL");
  });

  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  const frames = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, at) =>
      encodeFrame(first + at, "output.delta", { text: "a" }),
    );
  const save = (first: number, last: number) =>
    db.tx(null, async (tx) => saveEvents(tx, TASK.workspaceId, TASK.id, first, frames(first, last)));
  const block = (firstId: number, lastId: number) => ({
    ...{ firstId, lastId },
    frames: Buffer.concat(frames(firstId, lastId)),
  });

  async function seenAfter(first: number): Promise<number[]> {
    const seen: number[] = [];
    for (let after = first; ; after = seen.at(-1) ?? after) {
      const found = await findBlock(db, TASK.workspaceId, TASK.id, after);
      if (!found) return seen;
      for (let id = after + 1; id <= found.lastId; id++) if (id >= found.firstId) seen.push(id);
    }
  }

  test("are extended only in the last block, so a reader misses none of them", async () => {
    await save(2, 5);
    const extend = (to: number, from: number) =>
      db.tx(null, (tx) => extendBlock(tx, TASK_EVENTS, TASK, block(2, from), block(2, to)));
    expect(await extend(8, 5)).toBe(true);
    // The end of a step has not seen that 6 to 8 were stored.
    await save(6, 8);
    expect(await extend(10, 8)).toBe(false);
    await save(9, 10);
    expect(await seenAfter(1)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test("may lie within a block of the end of their step, which every reader finds", async () => {
    await save(11, 20);
    // Stored at the same time as the block before, which was not visible yet.
    await save(13, 14);
    await save(15, 15);
    await save(18, 19);
    for (let after = 10; after <= 20; after++)
      expect(await seenAfter(after)).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20].slice(after - 10));
    expect(await db.tx(null, (tx) => lastEvent(tx, TASK_EVENTS, TASK))).toBe(20);
  });
});

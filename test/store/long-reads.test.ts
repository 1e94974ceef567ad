/** Long texts that many callers read at once: no turn of the event loop reads more than one of them. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { keepPayloads, readPayloads, saltedHash } from "../../src/ledger/payload.ts";
import type { Db, SqlValue } from "../../src/store/db.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { listApprovals } from "../../src/tasks/approvals/history.ts";
import { findApproval } from "../../src/tasks/approvals/rows.ts";
import { findTask, listTasks } from "../../src/tasks/rows/tasks.ts";
import { findSchedule, listSchedules } from "../../src/tasks/schedules/rows.ts";
import { tempDir } from "../support/process.ts";

const READS = 8;
const SCHEDULE = `sch_${"0".repeat(26)}`;
const TEXT = "x".repeat(2_000_000);
let directory: ReturnType<typeof tempDir>;
let db: Db;
let hash: string;

beforeEach(async () => {
  directory = tempDir();
  db = openSqlite(join(directory.path, "gatehouse.db"));
  const { salt, hash: made } = saltedHash(TEXT, (bytes) => bytes.fill(7));
  hash = made;
  await db.run("INSERT INTO workspaces (id, name, created_at) VALUES (1, 'w', 1)");
  await db.run(
    `INSERT INTO agents (id, workspace_id, name, owner, memory_scope, tier_policy, tools, max_steps, status, version,
       created_at, updated_at) VALUES (1, 1, 'a', 'o', 'm', '{}', '[]', 1, 'active', 1, 1, 1)`,
  );
  await db.run(
    `INSERT INTO tasks (workspace_id, id, agent_id, agent, tier, tools, metadata, status, attempts, credits, input_tokens,
       output_tokens, steps, dispatch_seq, event_ceiling, created_by, created_at)
       VALUES (1, 'task_1', 1, 'a', 1, '[]', '{}', 'queued', 0, 0, 0, 0, 0, 1, 0, 't', 1)`,
  );
  await db.run(
    `INSERT INTO schedules (workspace_id, id, name, agent, prompt, cron, timezone, tools, metadata, missed, status, version,
       created_by, runs_as, created_at, updated_at)
       VALUES (1, '${SCHEDULE}', 'n', 'a', $1, '* * * * *', 'UTC', '[]', '{}', 'skip', 'active', 1, 't', 't', 1, 1)`,
    [TEXT],
  );
  await db.run(
    `INSERT INTO approvals (workspace_id, task_id, call_id, agent, tool, pending_seq, arguments_seq, arguments_hash, required,
       presented_at, expires_at, status) VALUES (1, 'task_1', 'call_1', 'a', 't', 1, 1, 'h', 1, 1, 2, 'pending')`,
  );
  await db.tx(1, async (tx) =>
    keepPayloads(tx, [{ workspaceId: 1, seq: 1, kind: "input", salt, text: TEXT, now: 1 }]),
  );
});
afterEach(async () => {
  await db.close();
  directory.remove();
});

const READERS: Readonly<Record<string, (db: Db) => Promise<unknown>>> = {
  "lists of tasks": (db) => listTasks(db, 1, {}, 200, undefined),
  "lists of schedules": (db) => listSchedules(db, 1, 200, undefined),
  "lists of approvals": (db) => listApprovals(db, 1, { statuses: ["pending"] }, 200, undefined),
  "texts of an entry": (db) =>
    readPayloads(db, { workspaceId: 1, seq: 1, hashes: { input: hash, output: undefined } }, TEXT.length),
  tasks: async (db) => expect(await findTask(db, 1, "task_1")).toBeDefined(),
  schedules: (db) => findSchedule(db, 1, SCHEDULE),
  approvals: (db) => findApproval(db, 1, "task_1", "call_1"),
};

/** Calls `done` for each long row that the store has read. */
function counting(store: Db, done: () => void): Db {
  const noted = <Result>(result: Result): Result => {
    const values = [result].flat().flatMap((row) => Object.values(row ?? {}));
    if (values.some((value) => typeof value === "string" && value.length === TEXT.length)) done();
    return result;
  };
  return {
    ...store,
    all: async <Row>(sql: string, params?: readonly SqlValue[]) => noted(await store.all<Row>(sql, params)),
    get: async <Row>(sql: string, params?: readonly SqlValue[]) => noted(await store.get<Row>(sql, params)),
  };
}

test.each(Object.entries(READERS))("%s that are read at the same time are read in turns", async (_, read) => {
  let [long, done] = [0, 0];
  const counted = counting(db, () => {
    long += 1;
  });
  const reads = Array.from({ length: READS }, async () => {
    await read(counted);
    done += 1;
  });
  const perTurn: number[] = [];
  while (done < READS) {
    const before = long;
    await new Promise((resolve) => setImmediate(resolve));
    perTurn.push(long - before);
  }
  await Promise.all(reads);
  expect(long).toBe(READS);
  // A turn that has just begun may also have been counted with the one before it.
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(2);
});

test("a short read waits for one long read at most, however many another workspace has begun", async () => {
  let long = 0;
  const counted = counting(db, () => {
    long += 1;
  });
  const reads = Array.from({ length: READS }, () => findSchedule(counted, 1, SCHEDULE));
  await new Promise((resolve) => setImmediate(resolve));
  const before = long;
  expect(await db.all("SELECT id FROM tasks WHERE workspace_id = $1", [2])).toEqual([]);
  expect(long - before).toBeLessThanOrEqual(2);
  await Promise.all(reads);
});

test("an urgent read waits for no long one", async () => {
  let long = 0;
  const counted = counting(db, () => {
    long += 1;
  });
  const reads = Array.from({ length: READS }, () => findSchedule(counted, 1, SCHEDULE));
  await new Promise((resolve) => setImmediate(resolve));
  const before = long;
  expect(await db.urgent.get("SELECT id FROM tasks WHERE workspace_id = $1", [1])).toEqual({ id: "task_1" });
  expect(await db.urgent.all("SELECT id FROM tasks WHERE workspace_id = $1", [1])).toHaveLength(1);
  expect(long).toBe(before);
  await Promise.all(reads);
});
